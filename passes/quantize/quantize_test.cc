#include "passes/quantize/quantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/text.h"

namespace fuselage::quantize {
namespace {

using ::fuselage::testing::StatusIs;
using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kNetwork[] = R"(graph @g {
  param @w: f32[2,2] = [1, 0.5, 0.25, -1]
  module @fc = linear(weight=@w)
  %x: f32[1,2] = placeholder
  %r: f32[1,2] = call_function relu(%x)
  %fc: f32[1,2] = call_module @fc(%r)
  output(%fc)
}
)";

// Gives each node the same values in each sample, two and then zeros; `poison` is what element 1 of the last node's
// last sample becomes.
class FakeRunner : public passes::Runner {
 public:
  explicit FakeRunner(int samples, float value = 1, float poison = 1)
      : samples_(samples), value_(value), poison_(poison) {}

  absl::Status ForEachSample(
      const ir::Graph&, absl::Span<const ir::Node* const> nodes,
      const std::function<absl::Status(int sample, absl::Span<const Tensor* const> values)>& visit) override {
    ++calls_;
    for (int sample = 0; sample < samples_; ++sample) {
      std::vector<Tensor> tensors;
      for (const ir::Node* node : nodes) {
        float* values = tensors.emplace_back(node->tensor_type()).data<float>();
        values[0] = value_;
        values[1] = value_ == 1 ? -2 : value_;
      }
      if (sample == samples_ - 1 && poison_ != 1) tensors.back().data<float>()[1] = poison_;
      std::vector<const Tensor*> values;
      for (const Tensor& tensor : tensors) values.push_back(&tensor);
      RETURN_IF_ERROR(visit(sample, values));
    }
    return absl::OkStatus();
  }

  std::string DataKey() const override { return key_; }

  void set_key(std::string key) { key_ = std::move(key); }
  int calls() const { return calls_; }

 private:
  int samples_;
  float value_, poison_;
  std::string key_;
  int calls_ = 0;
};

class QuantizeTest : public ::testing::Test {
 protected:
  QuantizeTest() { ops::RegisterAll(ops_); }

  absl::StatusOr<bool> Run(passes::Runner* runner, const QuantizeOptions& options = {}, const std::string& cache = "") {
    graph_ = *ir::Parse(kNetwork, ops_);
    remarks_ = {};
    return Quantize(options, runner, cache).Run(*graph_, remarks_);
  }

  bool HasRemark(absl::string_view text) const {
    return std::any_of(remarks_.list().begin(), remarks_.list().end(),
                       [&](const passes::Remark& remark) { return absl::StrContains(remark.message, text); });
  }

  ir::OpRegistry ops_;
  std::unique_ptr<ir::Graph> graph_;
  passes::Remarks remarks_;
};

TEST_F(QuantizeTest, NeedsARunner) {
  const absl::Status status = Run(nullptr).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("quantize needs calibration data")));
  EXPECT_TRUE(IsUsageError(status));
}

TEST_F(QuantizeTest, NeedsSamples) {
  FakeRunner runner(0);
  const absl::Status status = Run(&runner).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the calibration set is empty")));
  EXPECT_TRUE(IsUsageError(status));
}

TEST_F(QuantizeTest, WarnsAboutASingleSample) {
  FakeRunner one(1), two(2);
  EXPECT_OK(Run(&one));
  EXPECT_THAT(remarks_.list(), Contains(Field(&passes::Remark::message, HasSubstr("single sample"))));
  EXPECT_OK(Run(&two));
  EXPECT_THAT(remarks_.list(), Not(Contains(Field(&passes::Remark::message, HasSubstr("single sample")))));
}

TEST_F(QuantizeTest, NamesTheSampleAndTheTensorThatIsNotFinite) {
  FakeRunner nan(3, 1, std::numeric_limits<float>::quiet_NaN()), inf(3, 1, std::numeric_limits<float>::infinity());
  const absl::Status status = Run(&nan).status();
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("calibration sample 2: %r: element 1 is nan")));
  EXPECT_FALSE(IsUsageError(status));
  EXPECT_THAT(Run(&inf), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("element 1 is inf")));
}

TEST_F(QuantizeTest, NotesConstantsAndGivesThemAFiniteScale) {
  FakeRunner zeros(2, 0), threes(2, 3);
  EXPECT_OK(Run(&zeros));
  EXPECT_THAT(remarks_.list(), Contains(Field(&passes::Remark::message, HasSubstr("is 0 in all calibration samples"))));
  EXPECT_EQ(graph_->FindNodeOrNull("x_q")->tensor_type().quant, PerTensor(1));
  EXPECT_OK(graph_->Verify());
  EXPECT_OK(Run(&threes));
  EXPECT_THAT(remarks_.list(), Contains(Field(&passes::Remark::message, HasSubstr("is 3 in all calibration samples"))));
  EXPECT_EQ(graph_->FindNodeOrNull("x_q")->tensor_type().quant, PerTensor(static_cast<float>(3.0 / 255)));
}

std::vector<QuantizeOptions> AllMethods() {
  std::vector<QuantizeOptions> methods(5);
  methods[0].mutable_observer()->mutable_min_max();
  methods[1].mutable_observer()->mutable_moving_average();
  methods[2].mutable_observer()->mutable_percentile();
  methods[3].mutable_observer()->mutable_mse();
  methods[4].mutable_observer()->mutable_entropy();
  return methods;
}

TEST_F(QuantizeTest, EveryMethodRepeatsToTheByte) {
  for (const QuantizeOptions& options : AllMethods()) {
    std::string first;
    for (int i = 0; i < 3; ++i) {
      FakeRunner runner(2);
      EXPECT_OK(Run(&runner, options));
      if (i == 0) first = ir::Print(*graph_);
      EXPECT_EQ(ir::Print(*graph_), first);
    }
  }
}

TEST_F(QuantizeTest, LeavesTheCallersOptionsAlone) {
  QuantizeOptions options;
  options.add_skip("r");
  options.mutable_observer();
  const std::string before = options.SerializeAsString();
  FakeRunner runner(2);
  EXPECT_OK(Run(&runner, options));
  EXPECT_EQ(options.SerializeAsString(), before);
}

TEST_F(QuantizeTest, SaysWhatItIsCalibratedOn) {
  FakeRunner runner(7);
  EXPECT_OK(Run(&runner));
  EXPECT_TRUE(HasRemark("calibrated on 7 samples"));
}

class CacheTest : public QuantizeTest {
 protected:
  CacheTest() : folder_(::testing::TempDir() + "/" + ::testing::UnitTest::GetInstance()->current_test_info()->name()) {}
  ~CacheTest() override { std::filesystem::remove_all(folder_); }

  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    std::error_code error;
    for (std::filesystem::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
      files.push_back(it->path().string());
    }
    return files;
  }

  std::string folder_;
};

// Its samples must not be asked for.
class NoSamples : public FakeRunner {
 public:
  NoSamples() : FakeRunner(0) { set_key("key"); }
  absl::Status ForEachSample(const ir::Graph&, absl::Span<const ir::Node* const>,
                             const std::function<absl::Status(int, absl::Span<const Tensor* const>)>&) override {
    return absl::InternalError("a forward pass");
  }
};

TEST_F(CacheTest, TheSecondTimeThereIsNoForwardPass) {
  for (const QuantizeOptions& options : AllMethods()) {
    FakeRunner runner(2);
    runner.set_key("key");
    EXPECT_OK(Run(&runner, options, folder_));
    EXPECT_TRUE(HasRemark("calibrated on 2 samples"));
    const std::string first = ir::Print(*graph_);
    NoSamples none;
    EXPECT_OK(Run(&none, options, folder_));
    EXPECT_TRUE(HasRemark("calibrated on 2 samples"));
    EXPECT_TRUE(HasRemark("ranges from cache " + folder_)) << remarks_.ToString();
    EXPECT_EQ(ir::Print(*graph_), first);
  }
  EXPECT_EQ(Files().size(), 6) << "of five methods and of mean errors, and nothing temporary";
}

TEST_F(CacheTest, AnotherGraphDataOrMethodIsAnotherFile) {
  const auto run = [&](const char* key, const QuantizeOptions& options, float weight, int calls = 2) {
    graph_ = *ir::Parse(kNetwork, ops_);
    Tensor changed = *graph_->FindParameterOrNull("w")->tensor;
    changed.data<float>()[0] = weight;
    const std::string name = graph_->AddParameter("w", std::make_shared<const Tensor>(changed));
    ASSERT_OK(graph_->UpdateModule(graph_->FindModuleOrNull("fc"), "linear", {}, {{"weight", name}}));
    FakeRunner runner(2);
    runner.set_key(key);
    ASSERT_OK(Quantize(options, &runner, folder_).Run(*graph_, remarks_));
    EXPECT_EQ(runner.calls(), calls);
  };
  run("key", {}, 1);
  run("other", {}, 1);
  run("key", {}, 2);
  QuantizeOptions options;
  options.mutable_observer()->mutable_percentile()->set_percent(99);
  run("key", options, 1);
  options.mutable_observer()->mutable_percentile()->set_percent(98);
  run("key", options, 1);
  options.set_activations(QuantizeOptions::I8_SYMMETRIC);
  run("key", options, 1);
  options.add_skip("r");
  run("key", options, 1, /*calls=*/0);  // Fewer layers need nothing that is not there.
  EXPECT_EQ(Files().size(), 9) << "three of them of mean errors";
}

TEST_F(CacheTest, SpelledDefaultsAreTheDefaults) {
  FakeRunner runner(2);
  runner.set_key("key");
  QuantizeOptions options;
  EXPECT_OK(Run(&runner, options, folder_));
  options.mutable_observer()->mutable_mse();
  EXPECT_OK(Run(&runner, options, folder_));
  options.mutable_observer()->mutable_percentile();
  EXPECT_OK(Run(&runner, options, folder_));
  options.mutable_observer()->mutable_percentile()->set_percent(99.99);
  EXPECT_OK(Run(&runner, options, folder_));
  EXPECT_EQ(runner.calls(), 4);
}

TEST_F(CacheTest, ABrokenFileIsCalibratedAnew) {
  const auto run = [&]() -> int {
    FakeRunner runner(2);
    runner.set_key("key");
    EXPECT_OK(Run(&runner, {}, folder_));
    return runner.calls();
  };
  EXPECT_EQ(run(), 2);
  ASSERT_EQ(Files().size(), 2) << "of ranges and of mean errors";
  for (const std::string& path : Files()) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    const std::string whole = text.str();
    const std::string kBroken[] = {"",
                                   "\1\2\3",
                                   "model { path: \"x\" }",
                                   whole.substr(0, whole.size() / 2),
                                   whole + whole,
                                   absl::StrReplaceAll(whole, {{"max: 1", "max: 2"}, {"errors: [", "errors: [1, "}})};
    for (const std::string& broken : kBroken) {
      ASSERT_NE(broken, whole);
      std::ofstream(path) << broken;
      EXPECT_EQ(run(), 1) << broken;
      EXPECT_TRUE(HasRemark("is not used: ")) << remarks_.ToString();
      EXPECT_EQ(run(), 0) << "written anew";
    }
  }
}

TEST_F(CacheTest, NothingIsKeptWithoutAKeyOrAFolder) {
  FakeRunner runner(2);
  EXPECT_OK(Run(&runner, {}, folder_));
  EXPECT_OK(Run(&runner, {}, folder_));
  EXPECT_EQ(runner.calls(), 4);
  EXPECT_TRUE(Files().empty());
  runner.set_key("key");
  EXPECT_OK(Run(&runner));
  EXPECT_EQ(runner.calls(), 6);
}

TEST_F(CacheTest, AFolderThatCannotBeWrittenIsNoError) {
  std::ofstream(folder_) << "a file";
  FakeRunner runner(2);
  runner.set_key("key");
  EXPECT_OK(Run(&runner, {}, folder_));
  EXPECT_TRUE(HasRemark("the ranges are not kept")) << remarks_.ToString();
}

TEST_F(CacheTest, DoesNotHideBrokenOptionsOrSamples) {
  FakeRunner runner(2), nan(2, 1, std::numeric_limits<float>::quiet_NaN());
  runner.set_key("key");
  nan.set_key("nan");
  QuantizeOptions options;
  options.mutable_observer()->mutable_percentile()->set_percent(3);
  EXPECT_THAT(Run(&runner, options, folder_), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("percent is 3")));
  EXPECT_THAT(Run(&nan, {}, folder_), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is nan")));
  EXPECT_TRUE(Files().empty());
}

TEST_F(QuantizeTest, SourcesNameWhatAPairBelongsTo) {
  FakeRunner runner(2);
  EXPECT_OK(Run(&runner));
  EXPECT_THAT(graph_->FindNodeOrNull("r_q")->sources(), ::testing::ElementsAre("r"));
  EXPECT_THAT(graph_->FindNodeOrNull("r_dq")->sources(), ::testing::ElementsAre("fc"));
}

// Without a call for each of them, which no stack would hold.
TEST_F(QuantizeTest, FollowsALongChainOfViews) {
  graph_ = *ir::Parse(kNetwork, ops_);
  ir::Node *output = graph_->output(), *value = output->operand(0);
  for (int i = 0; i < 200'000; ++i) {
    value = *graph_->AddFunction("view", "reshape", {value}, {{"shape", std::vector<int64_t>{1, 2}}}, output);
  }
  output->set_operand(0, *graph_->AddModuleCall("last", "fc", {value}, output));
  FakeRunner runner(2);
  EXPECT_OK(Quantize({}, &runner, "").Run(*graph_, remarks_));
  EXPECT_TRUE(value->users()[0]->IsOp("quantize")) << "the last view's reader wants codes";
}

TEST_F(QuantizeTest, KeepsALayerWithNonFiniteWeightsInFp32) {
  graph_ = *ir::Parse(kNetwork, ops_);
  Tensor weight = *graph_->FindParameterOrNull("w")->tensor;
  weight.data<float>()[3] = std::numeric_limits<float>::infinity();
  const std::string name = graph_->AddParameter("bad", std::make_shared<const Tensor>(weight));
  ASSERT_OK(graph_->UpdateModule(graph_->FindModuleOrNull("fc"), "linear", {}, {{"weight", name}}));
  FakeRunner runner(2);
  ASSERT_OK(Quantize(QuantizeOptions(), &runner).Run(*graph_, remarks_));
  EXPECT_THAT(remarks_.list(), Contains(Field(&passes::Remark::message, "weight: element 3 is inf")));
  EXPECT_EQ(graph_->FindModuleOrNull("fc")->parameters.at("weight"), name);
}

// The runner gives all but two of the features nothing.
constexpr char kOutliers[] = R"(graph @g {
  param @a.weight: f32[8,8] = seed(1)
  param @b.weight: f32[8,8] = seed(2)
  module @a = linear(weight=@a.weight)
  module @b = linear(weight=@b.weight)
  %x: f32[1,32,8] = placeholder
  %a: f32[1,32,8] = call_module @a(%x)
  %add: f32[1,32,8] = call_function add(%x, %a)
  %b: f32[1,32,8] = call_module @b(%add)
  output(%b)
}
)";

// Linears that read anything but a value of the FP32 graph take a tenth of the others' time.
class FastLinears : public passes::Profiler {
 public:
  absl::StatusOr<std::vector<std::vector<Call>>> Profile(absl::Span<const ir::Graph* const> graphs) override {
    std::vector<std::vector<Call>> runs;
    for (const ir::Graph* graph : graphs) {
      runs.emplace_back();
      for (const ir::Node* node = graph->first(); node != nullptr; node = node->next()) {
        if (!node->IsOp("linear")) continue;
        const std::string& input = node->operand(0)->name();
        runs.back().push_back({"linear", node->SourcesOrSelf(), 10, input == "x" || input == "add" ? 1.0 : 0.1});
      }
    }
    return runs;
  }
};

TEST_F(QuantizeTest, OutliersStayInFloatWhicheverIsFaster) {
  const auto quantized = [&](QuantizeOptions options, const std::string& cache = "") {
    options.set_correct_bias(false);
    const std::unique_ptr<ir::Graph> graph = *ir::Parse(kOutliers, ops_);
    FastLinears profiler;
    FakeRunner runner(2);
    runner.set_key("samples");
    EXPECT_OK(Quantize(options, &runner, cache, &profiler).Run(*graph, remarks_));
    EXPECT_OK(graph->Verify());
    EXPECT_EQ(runner.calls(), cache.empty() ? 1 : 0) << "all ranges are of one run";
    return ir::Print(*graph);
  };
  const std::string int8 = quantized({});
  EXPECT_THAT(int8, HasSubstr("call_function add(%x, %a)"));
  EXPECT_THAT(int8, HasSubstr("dynamic_quantize_symmetric(%add, dims=[-1])"));
  EXPECT_TRUE(HasRemark("kept in FP32: half the features of %add would have at most 0 codes"));
  QuantizeOptions fastest;
  fastest.set_precision(QuantizeOptions::FASTEST);
  EXPECT_EQ(quantized(fastest), int8);

  QuantizeOptions without;
  without.set_least_feature_codes(0);
  EXPECT_THAT(quantized(without), Not(HasSubstr("dynamic")));
  QuantizeOptions in_groups;  // What is not named there has a scale for each output channel, and for all tokens.
  in_groups.set_weights(QuantizeOptions::INT4);
  EXPECT_THAT(quantized(in_groups), Not(HasSubstr("dynamic")));
  EXPECT_THAT(quantized(in_groups), HasSubstr("call_function add(%x, %a)"));
  const std::string cache = ::testing::TempDir() + "/outliers";
  FakeRunner runner(2);
  runner.set_key("samples");
  ASSERT_OK(Quantize({}, &runner, cache).Run(**ir::Parse(kOutliers, ops_), remarks_));
  EXPECT_EQ(quantized({}, cache), int8);
}

}  // namespace
}  // namespace fuselage::quantize
