#include "passes/core/pipeline.h"

#include <google/protobuf/wrappers.pb.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "interpreter/interpreter.h"
#include "ir/testing/matchers.h"
#include "ir/testing/tiny_ops.h"
#include "ir/text.h"

namespace fuselage::passes {
namespace {

using fuselage::testing::StatusIs;
using google::protobuf::Int32Value;
using google::protobuf::StringValue;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::string_view kThreeRelus = R"(graph @g {
  %x: f32[4] = placeholder
  %a: f32[4] = call_function relu(%x)
  %b: f32[4] = call_function relu(%a)
  %c: f32[4] = call_function relu(%b)
  output(%c)
}
)";

// relu(relu(x)) => relu(x), one at a time; the mode makes it misbehave.
class DropOneRelu : public Pass {
 public:
  explicit DropOneRelu(std::string mode) : mode_(std::move(mode)) {}
  absl::string_view name() const override { return "drop_one_relu"; }

 protected:
  absl::StatusOr<bool> RunImpl(ir::Graph& graph, Remarks& remarks) const override {
    if (mode_ == "fail") return absl::InvalidArgumentError("no luck");
    if (mode_ == "slope" || mode_ == "slope of config") {
      ir::Node* x = graph.FindNodeOrNull("x");
      ir::Node* y = *graph.AddFunction("y", "relu", {x}, {{"slope", 0.5}}, x->next());
      x->users()[0]->set_operand(0, y);
      graph.FindNodeOrNull("output")->set_operand(0, y);
      return true;
    }
    if (mode_ == "cycle") {
      graph.FindNodeOrNull("a")->set_operand(0, graph.FindNodeOrNull("b"));
      return true;
    }
    for (ir::Node* node : graph.Snapshot()) {
      if (!node->IsOp("relu")) continue;
      if (!node->operand(0)->IsOp("relu")) {
        remarks.Missed(*node, "its input is not a relu");
        continue;
      }
      remarks.Applied(*node, "dropped");
      node->ReplaceAllUsesWith(node->operand(0));
      return mode_ != "lie";
    }
    return mode_ == "lie";
  }
  NumericContract numeric_contract() const override {
    if (mode_ == "tolerance") return {NumericContract::kTolerance, 1e-5};
    if (mode_ == "slope of config") return {NumericContract::kTolerance, 1e-5, /*of_config=*/true};
    if (mode_ == "quantizes") return {NumericContract::kQuantizes};
    if (mode_ == "one code") return {NumericContract::kOneCode};
    return {};
  }
  absl::Status Ensures(const ir::Graph&) const override {
    return mode_ == "break" ? absl::InternalError("it does not hold") : absl::OkStatus();
  }

 private:
  std::string mode_;
};

class PipelineTest : public ::testing::Test {
 protected:
  PipelineTest() {
    fuselage::testing::RegisterTinyOps(ops_);
    registry_.Register<StringValue>([](const StringValue& options, const PassEnvironment&) {
      return std::make_unique<DropOneRelu>(options.value());
    });
    absl::StatusOr<std::unique_ptr<ir::Graph>> graph = ir::Parse(kThreeRelus, ops_);
    EXPECT_OK(graph);
    graph_ = *std::move(graph);
    options_.evaluate = [](const ir::Graph& graph) {
      std::vector<Tensor> inputs;
      inputs.push_back(Tensor::Of<float>({4}, {-2, -1, 1, 2}));
      return interpreter::Run(graph, inputs);
    };
  }

  static void AddStep(const std::string& mode, google::protobuf::RepeatedPtrField<PipelineConfig::Step>* steps) {
    StringValue options;
    options.set_value(mode);
    steps->Add()->mutable_pass()->PackFrom(options);
  }
  absl::StatusOr<std::vector<PassReport>> RunMode(const std::string& mode) {
    PipelineConfig config;
    AddStep(mode, config.mutable_steps());
    return RunPipeline(config, registry_, environment_, *graph_, options_);
  }

  ir::OpRegistry ops_;
  PassRegistry registry_;
  PassEnvironment environment_;
  PipelineOptions options_;
  std::unique_ptr<ir::Graph> graph_;
};

TEST_F(PipelineTest, ReportsWhatAPassDid) {
  ASSERT_OK_AND_ASSIGN(std::vector<PassReport> reports, RunMode(""));
  ASSERT_EQ(reports.size(), 1);
  EXPECT_TRUE(reports[0].changed);
  EXPECT_EQ(reports[0].nodes_before, 5);
  EXPECT_EQ(reports[0].nodes_after, 4);
  EXPECT_EQ(reports[0].matches, 1);
  EXPECT_EQ(reports[0].max_abs_error, 0.0);
  EXPECT_TRUE(std::isinf(*reports[0].snr_db));
  ASSERT_EQ(reports[0].remarks.size(), 2);
  EXPECT_EQ(reports[0].remarks[0].node, "a");
  EXPECT_EQ(reports[0].remarks[0].pass, "drop_one_relu");
}

TEST_F(PipelineTest, FixedPointRunsUntilNothingChanges) {
  PipelineConfig config;
  AddStep("", config.add_steps()->mutable_fixed_point()->mutable_steps());
  std::vector<std::string> seen;
  options_.observe = [&](int index, absl::string_view step, const ir::Graph& graph) {
    seen.push_back(absl::StrCat(index, " ", step, " ", graph.num_nodes()));
    return absl::OkStatus();
  };
  ASSERT_OK(RunPipeline(config, registry_, environment_, *graph_, options_));
  EXPECT_THAT(seen, ElementsAre("0 input 5", "1 drop_one_relu 4", "2 drop_one_relu 3", "3 drop_one_relu 3"));
}

TEST_F(PipelineTest, FixedPointIsCapped) {
  PipelineConfig config;
  auto* fixed_point = config.add_steps()->mutable_fixed_point();
  AddStep("", fixed_point->mutable_steps());
  fixed_point->set_max_rounds(2);
  EXPECT_THAT(RunPipeline(config, registry_, environment_, *graph_, options_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("still changes after 2 rounds")));
}

TEST_F(PipelineTest, CatchesPassesThatMisbehave) {
  const std::pair<const char*, const char*> kCases[] = {
      {"fail", "drop_one_relu: no luck"},
      {"lie", "says changed=0, but the graph's text differs"},
      {"cycle", "%b is not defined before it"},
      {"break", "did not ensure what it states: it does not hold"},
      {"slope", "must not change a bit, but outputs moved by up to 1"},
  };
  for (const auto& [mode, message] : kCases) {
    graph_ = *ir::Parse(kThreeRelus, ops_);
    absl::StatusOr<std::vector<PassReport>> reports = RunMode(mode);
    ASSERT_FALSE(reports.ok()) << mode;
    EXPECT_THAT(std::string(reports.status().message()), HasSubstr(message));
  }
}

// A rule of the config that breaks its contract is no bug of ours.
TEST_F(PipelineTest, TellsTheConfigsMistakesFromOurs) {
  const absl::Status status = RunMode("slope of config").status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("moved by up to 1, allowed is 1e-05")));
  EXPECT_TRUE(IsUsageError(status));
}

// Whatever a pass may do by its contract, and wherever among the outputs the NaN stands.
TEST_F(PipelineTest, CatchesPassesThatMakeNan) {
  const std::string kModes[] = {"", "tolerance", "quantizes", "one code"};
  for (const std::string& mode : kModes) {
    for (int place = 0; place < 4; ++place) {
      graph_ = *ir::Parse(kThreeRelus, ops_);
      options_.evaluate = [&, nodes = graph_->num_nodes()](const ir::Graph& graph) {
        std::vector<Tensor> outputs;
        outputs.push_back(Tensor::Of<float>({4}, {-2, -1, 1, 2}));
        if (graph.num_nodes() != nodes) outputs[0].Set(place, std::nan(""));
        return outputs;
      };
      EXPECT_THAT(RunMode(mode), StatusIs(absl::StatusCode::kInternal, HasSubstr("drop_one_relu: "))) << mode << place;
    }
  }
}

// 30 dB, or where the codes of an earlier pass left less, 3 dB less than that.
TEST_F(PipelineTest, OneCodeMayCostWhatQuantizingDid) {
  const auto run = [&](const std::vector<std::string>& modes, double after_one, double after_two) {
    graph_ = *ir::Parse(kThreeRelus, ops_);
    options_.evaluate = [&, nodes = graph_->num_nodes()](const ir::Graph& graph) {
      const size_t done = nodes - graph.num_nodes();
      const double y = 1 + (done > 0 ? after_one : 0) + (done > 1 ? after_two : 0);
      std::vector<Tensor> outputs;
      outputs.push_back(Tensor::Of<double>({2}, {y, -y}));
      return outputs;
    };
    PipelineConfig config;
    for (const std::string& mode : modes) AddStep(mode, config.mutable_steps());
    return RunPipeline(config, registry_, environment_, *graph_, options_).status();
  };
  // Of a range of 2, and of one of 2.4.
  const double thirty_one_db = 0.0564, twenty_db = 0.2, eighteen_db = 0.302, fifteen_db = 0.427;
  EXPECT_OK(run({"one code"}, thirty_one_db, 0));
  EXPECT_THAT(run({"one code"}, twenty_db, 0), StatusIs(absl::StatusCode::kInternal, HasSubstr("at least 30")));
  EXPECT_OK(run({"quantizes", "one code"}, twenty_db, eighteen_db));
  EXPECT_THAT(run({"quantizes", "one code"}, twenty_db, fifteen_db),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("at least 17")));
}

TEST_F(PipelineTest, UnknownOptionsListTheKnownOnes) {
  PipelineConfig config;
  config.add_steps()->mutable_pass()->PackFrom(Int32Value());
  EXPECT_THAT(RunPipeline(config, registry_, environment_, *graph_, options_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'google.protobuf.Int32Value'; known: google.protobuf.StringValue")));
}

TEST_F(PipelineTest, DeadNodesModulesAndParametersGo) {
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<ir::Graph> graph, ir::Parse(R"(graph @g {
  param @p: f32[1] = [2]
  param @q: f32[1] = [2]
  module @m = scale(weight=@p)
  %x: f32[4] = placeholder
  %unused: f32[4] = placeholder
  %k: f32[1] = get_attr @q
  %a: f32[4] = call_module @m(%x)
  %b: f32[4] = call_function scale(%a, %k)
  output(%x)
}
)",
                                                                   ops_));
  EXPECT_EQ(RemoveDeadNodes(*graph), 6);  // Three nodes, a module, two parameters.
  EXPECT_EQ(ir::Print(*graph),
            "graph @g {\n  %x: f32[4] = placeholder\n  %unused: f32[4] = placeholder\n  output(%x)\n}\n");
  EXPECT_OK(graph->Verify());
}

}  // namespace
}  // namespace fuselage::passes
