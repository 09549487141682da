#include "compiler/compiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "frontend/onnx/model_builder.h"
#include "interpreter/interpreter.h"
#include "ir/base/status.h"
#include "ir/testing/matchers.h"
#include "ir/text.h"
#include "passes/autotune/autotune.pb.h"
#include "passes/quantize/quantize.pb.h"
#include "runtime/thread_pool.h"

namespace fuselage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;
using Tensors = std::map<std::string, Tensor>;

Tensor Seeded(Shape shape, uint64_t seed) {
  return SeededTensor({DType::kF32, std::move(shape), std::nullopt, Layout::kRowMajor}, seed);
}

// An image and a scale for its features in, logits and features out.
std::string NetworkFile() {
  onnx::ModelBuilder model;
  model.Input("image", {"N", 3, 8, 8}).Input("scale", {"N", 4});
  model.Initializer("w", Seeded({4, 3, 3, 3}, 1)).Initializer("v", Seeded({5, 4}, 2));
  model.Node("Conv", {"image", "w"}, {"c"}, "conv").Ints("pads", {1, 1, 1, 1});
  model.Node("Relu", {"c"}, {"r"}, "relu");
  model.Node("GlobalAveragePool", {"r"}, {"g"}, "gap");
  model.Node("Flatten", {"g"}, {"features"}, "flatten");
  model.Node("Mul", {"features", "scale"}, {"m"}, "mul");
  model.Node("Gemm", {"m", "v"}, {"logits"}, "fc").Int("transB", 1);
  model.Output("logits").Output("features");
  const std::string path = ::testing::TempDir() + "/network.onnx";
  std::ofstream(path, std::ios::binary) << model.Bytes();
  return path;
}

std::vector<std::string> NamesOf(const std::vector<Value>& values) {
  std::vector<std::string> names;
  for (const Value& value : values) names.push_back(value.name);
  return names;
}

// What the interpreter makes of it.
Tensors Interpreted(const Model& model, const Tensor& image, const Tensor& scale) {
  const auto values = interpreter::Run(model.graph(), std::vector<Tensor>{image, scale});
  EXPECT_THAT(values, IsOk());
  Tensors outputs;
  for (size_t i = 0; i < model.outputs().size(); ++i) outputs[model.outputs()[i].name] = (*values)[i];
  return outputs;
}

class CompilerTest : public ::testing::Test {
 protected:
  CompilerTest() : network_(*Load(NetworkFile())), image_(Seeded({1, 3, 8, 8}, 7)), scale_(Seeded({1, 4}, 8)) {}

  absl::StatusOr<Model> Quantized() const { return Compile(network_, Samples()); }
  static Tensors Samples() { return {{"image", Seeded({8, 3, 8, 8}, 3)}, {"scale", Seeded({8, 4}, 4)}}; }

  Model network_;
  Tensor image_, scale_;
};

// A position embedding of a convolution's size at batch 1 is no residual of it, nor of a norm: any batch runs.
TEST(CompilerBatchTest, ConstantSummandsAreBroadcast) {
  onnx::ModelBuilder model(17);
  model.Input("image", {"N", 3, 8, 8}).Initializer("w", Seeded({4, 3, 3, 3}, 1));
  model.Initializer("position", Seeded({1, 4, 8, 8}, 2)).Initializer("bias", Seeded({1, 4, 8, 8}, 3));
  model.Initializer("scale", Seeded({8}, 4)).Initializer("shift", Seeded({8}, 5)).Initializer("v", Seeded({8, 8}, 6));
  model.Node("Conv", {"image", "w"}, {"c"}, "conv").Ints("pads", {1, 1, 1, 1});
  model.Node("Add", {"c", "position"}, {"a"}, "add").Node("Relu", {"a"}, {"r"}, "relu");
  model.Node("Add", {"r", "bias"}, {"b"}, "add_bias");
  model.Node("LayerNormalization", {"b", "scale", "shift"}, {"n"}, "norm");
  model.Node("MatMul", {"n", "v"}, {"y"}, "fc").Output("y");
  const std::string path = ::testing::TempDir() + "/position.onnx";
  std::ofstream(path, std::ios::binary) << model.Bytes();
  ASSERT_OK_AND_ASSIGN(const Model network, Load(path));
  CompileOptions per_token;
  for (PipelineConfig::Step& step : *per_token.pipeline.mutable_steps()) {
    if (!step.pass().Is<QuantizeOptions>()) continue;
    QuantizeOptions quantize;
    quantize.add_per_token("fc");
    step.mutable_pass()->PackFrom(quantize);
  }
  const Tensor images = Seeded({3, 3, 8, 8}, 7);
  for (const CompileOptions& options : {CompileOptions(), per_token}) {
    ASSERT_OK_AND_ASSIGN(const Model int8, Compile(network, {{"image", Seeded({8, 3, 8, 8}, 8)}}, options));
    SessionOptions three;
    three.batch = 3;
    Tensor wanted, found;
    ASSERT_OK_AND_ASSIGN(Session fp32, Prepare(network, three));
    ASSERT_OK_AND_ASSIGN(Session session, Prepare(int8, three));
    EXPECT_THAT(fp32.Run({{"image", images}}, {{"y", &wanted}}), IsOk());
    EXPECT_THAT(session.Run({{"image", images}}, {{"y", &found}}), IsOk());
    for (int64_t i = 0; i < wanted.num_elements(); ++i) ASSERT_NEAR(found.At(i), wanted.At(i), 0.5) << i;
  }
}

// A state beside the input, as networks that run on a stream have it.
TEST(CompilerBatchTest, InputsThatShareNoBatchCountSamplesInFront) {
  onnx::ModelBuilder model;
  model.Input("x", {1, 3}).Input("state", {2, 1, 4}).Input("gain", {});
  model.Initializer("w", Seeded({3, 4}, 1));
  model.Node("MatMul", {"x", "w"}, {"h"}, "fc").Node("Mul", {"h", "gain"}, {"g"}, "scale");
  model.Node("Add", {"state", "g"}, {"next"}, "step").Output("next").Output("h");
  const std::string path = ::testing::TempDir() + "/state.onnx";
  std::ofstream(path, std::ios::binary) << model.Bytes();
  ASSERT_OK_AND_ASSIGN(const Model network, Load(path));
  ASSERT_EQ(network.warnings().size(), 1);
  EXPECT_THAT(network.warnings()[0], HasSubstr("input %state is f32[2,1,4] and input %x f32[1,3]"));
  EXPECT_EQ(network.inputs()[0].type.shape, Shape({1, 3}));
  EXPECT_EQ(network.inputs()[1].type.shape, Shape({1, 2, 1, 4}));
  EXPECT_EQ(network.inputs()[2].type.shape, Shape({1}));
  EXPECT_EQ(network.outputs()[0].type.shape, Shape({1, 2, 1, 4}));
  EXPECT_EQ(network.outputs()[1].type.shape, Shape({1, 4}));
  const Tensor w = Seeded({3, 4}, 1), state = Seeded({1, 2, 1, 4}, 2), gain = Tensor::Of<float>({1}, {10});
  const Tensor x = Tensor::Of<float>({1, 3}, {0, 1, 0});
  ASSERT_OK_AND_ASSIGN(Session session, Prepare(network));
  Tensor next;
  EXPECT_THAT(session.Run({{"x", x}, {"state", state}, {"gain", gain}}, {{"next", &next}}), IsOk());
  for (int i = 0; i < 8; ++i) EXPECT_NEAR(next.At(i), state.At(i) + 10 * w.At(4 + i % 4), 1e-5);
  SessionOptions two;
  two.batch = 2;
  EXPECT_THAT(Prepare(network, two).status(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("batch of 2")));
  EXPECT_THAT(
      Compile(network, {{"x", Seeded({5, 3}, 3)}, {"state", Seeded({5, 2, 1, 4}, 4)}, {"gain", Seeded({5}, 5)}}),
      IsOk());
}

// Four samples with a constant each: another batch would be an error, or, of one, broadcast to four.
TEST(CompilerBatchTest, AFixedBatchIsOneSampleWhereNoOtherFits) {
  for (const char* op : {"Concat", "Mul"}) {
    onnx::ModelBuilder model;
    model.Input("x", {4, 3}).Initializer("w", Seeded({4, 3}, 1)).Node(op, {"x", "w"}, {"y"}, "node").Output("y");
    if (op[0] == 'C') model.Int("axis", 1);
    const std::string path = ::testing::TempDir() + "/fixed.onnx";
    std::ofstream(path, std::ios::binary) << model.Bytes();
    ASSERT_OK_AND_ASSIGN(const Model network, Load(path));
    EXPECT_EQ(network.inputs()[0].type.shape, Shape({1, 4, 3}));
    ASSERT_EQ(network.warnings().size(), 1);
    EXPECT_THAT(network.warnings()[0], HasSubstr("with a batch of 1 in place of 4: "));
  }
}

// Dimension 0 is time, which the network goes through: one step of it would be another network.
TEST(CompilerBatchTest, WhatDoesNotFollowTheBatchMakesAllOfItOneSample) {
  onnx::ModelBuilder model;
  model.Input("x", {5, 1, 3}).Initializer("w", Seeded({1, 8, 3}, 1)).Initializer("r", Seeded({1, 8, 2}, 2));
  model.Node("LSTM", {"x", "w", "r"}, {"all", "last"}, "lstm").Int("hidden_size", 2).Output("last").Output("all");
  const std::string path = ::testing::TempDir() + "/time.onnx";
  std::ofstream(path, std::ios::binary) << model.Bytes();
  ASSERT_OK_AND_ASSIGN(const Model network, Load(path));
  EXPECT_EQ(network.inputs()[0].type.shape, Shape({1, 5, 1, 3}));
  EXPECT_EQ(network.outputs()[0].type.shape, Shape({1, 1, 2}));
  EXPECT_EQ(network.outputs()[1].type.shape, Shape({1, 5, 1, 1, 2}));
  ASSERT_EQ(network.warnings().size(), 1);
  EXPECT_THAT(network.warnings()[0], HasSubstr("in place of 5: output %lstm.1 is still [1,1,2]"));
}

// A detector's anchors follow from no input.
TEST(CompilerBatchTest, AConstantOutputNeedNotFollowTheBatch) {
  onnx::ModelBuilder model;
  model.Input("x", {4, 3}).Initializer("w", Seeded({3, 4}, 1)).Initializer("anchors", Seeded({6, 4}, 2));
  model.Node("MatMul", {"x", "w"}, {"y"}, "fc").Node("Identity", {"anchors"}, {"z"}, "same").Output("y").Output("z");
  const std::string path = ::testing::TempDir() + "/anchors.onnx";
  std::ofstream(path, std::ios::binary) << model.Bytes();
  ASSERT_OK_AND_ASSIGN(const Model network, Load(path));
  EXPECT_EQ(network.inputs()[0].type.shape, Shape({1, 3}));
  EXPECT_EQ(network.outputs()[1].type.shape, Shape({6, 4}));
  EXPECT_TRUE(network.warnings().empty());
}

TEST_F(CompilerTest, FromAFileToInt8) {
  EXPECT_THAT(NamesOf(network_.inputs()), ElementsAre("image", "scale"));
  EXPECT_THAT(NamesOf(network_.outputs()), ElementsAre("logits", "features"));
  ASSERT_OK_AND_ASSIGN(const Model model, Quantized());
  EXPECT_EQ(model.reports().size(), 10);
  EXPECT_TRUE(network_.reports().empty());
  ASSERT_OK_AND_ASSIGN(Session session, Prepare(model));
  Tensor logits, features;
  ASSERT_THAT(session.Run({{"image", image_}, {"scale", scale_}}, {{"logits", &logits}, {"features", &features}}),
              IsOk());
  Tensors wanted = Interpreted(model, image_, scale_);
  EXPECT_EQ(ToDoubles(logits), ToDoubles(wanted["logits"])) << "integers: the same bits";
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(features.At(i), wanted["features"].At(i), 1e-6) << "float sums";
  const Tensors floats = Interpreted(network_, image_, scale_);
  EXPECT_NE(ToDoubles(logits), ToDoubles(floats.at("logits")));
  for (int i = 0; i < 5; ++i) EXPECT_NEAR(logits.At(i), floats.at("logits").At(i), 0.02);
}

TEST_F(CompilerTest, GivesWhatIsAskedForAndNoMore) {
  ASSERT_OK_AND_ASSIGN(Session session, Prepare(network_));
  Tensor logits, again, features;
  ASSERT_THAT(session.Run({{"image", image_}, {"scale", scale_}}, {{"logits", &logits}}), IsOk());
  ASSERT_THAT(session.Run({{"image", image_}, {"scale", scale_}}, {{"features", &features}, {"logits", &again}}),
              IsOk());
  EXPECT_EQ(ToDoubles(logits), ToDoubles(again));
  EXPECT_EQ(features.shape(), Shape({1, 4}));
}

TEST_F(CompilerTest, MistakesAreNamed) {
  ASSERT_OK_AND_ASSIGN(Session session, Prepare(network_));
  Tensor out;
  EXPECT_THAT(session.Run({{"image", image_}}, {{"logits", &out}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("found no input \"scale\", wanted f32[1,4]")));
  EXPECT_THAT(session.Run({{"image", image_}, {"scale", image_}}, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\"scale\" is f32[1,3,8,8], wanted f32[1,4]")));
  EXPECT_THAT(session.Run({{"picture", image_}}, {}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("\"picture\", wanted one of \"image\", \"scale\"")));
  EXPECT_THAT(session.Run({{"image", image_}, {"scale", scale_}}, {{"c", &out}}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("wanted one of \"logits\", \"features\"")));
  Tensor both = image_;
  EXPECT_THAT(session.Run({{"image", both}, {"scale", scale_}}, {{"logits", &both}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("output \"logits\" is also an input")));
  EXPECT_EQ(both.type(), image_.type()) << "untouched";
  EXPECT_THAT(session.Run({{"image", image_}, {"scale", scale_}}, {{"logits", nullptr}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is null")));
  EXPECT_THAT(Load("nowhere.onnx"), StatusIs(absl::StatusCode::kNotFound, HasSubstr("nowhere.onnx")));
  EXPECT_THAT(Compile(network_, {{"image", image_}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\"scale\"")));
  const auto rejected = [this](auto edit) {
    SessionOptions options;
    edit(options);
    return IsUsageError(Prepare(network_, options).status());
  };
  EXPECT_TRUE(rejected([](SessionOptions& o) { o.threads = 0; }));
  EXPECT_TRUE(rejected([](SessionOptions& o) { o.threads = 1025; }));
  EXPECT_TRUE(rejected([](SessionOptions& o) { o.batch = -1; }));
  EXPECT_TRUE(rejected([](SessionOptions& o) { o.kept_batches = 0; }));
  EXPECT_TRUE(rejected([](SessionOptions& o) { o.max_memory_bytes = -1; }));
  if (!kernels::CpuSupports(kernels::Isa::kAmx)) {
    EXPECT_TRUE(rejected([](SessionOptions& o) { o.isa = kernels::Isa::kAmx; }));
  }
  SessionOptions options;
  options.max_memory_bytes = 100;  // The session above, which has none, does not lift it.
  EXPECT_EQ(Prepare(network_, options).status().code(), absl::StatusCode::kResourceExhausted);
  options.device = "tpu";
  EXPECT_TRUE(IsUsageError(Prepare(network_, options).status()));
  options.device = "cuda";
  EXPECT_TRUE(IsUsageError(Prepare(network_, options).status())) << "without a backend";
}

TEST_F(CompilerTest, AnyBatchAndEveryDevice) {
  ASSERT_OK_AND_ASSIGN(const Model model, Quantized());
  const Tensors wanted = Interpreted(model, image_, scale_);
  SessionOptions options;
  options.device = "reference";
  ASSERT_OK_AND_ASSIGN(Session reference, Prepare(model, options));
  Tensor logits;
  ASSERT_THAT(reference.Run({{"image", image_}, {"scale", scale_}}, {{"logits", &logits}}), IsOk());
  EXPECT_EQ(ToDoubles(logits), ToDoubles(wanted.at("logits")));

  options.device = "cpu";
  options.batch = 3;
  options.threads = 2;
  ASSERT_OK_AND_ASSIGN(Session session, Prepare(model, options));
  EXPECT_EQ(session.inputs()[0].type.shape, Shape({3, 3, 8, 8}));
  Tensor images = Seeded({3, 3, 8, 8}, 9), scales = Seeded({3, 4}, 10);
  std::copy_n(image_.data<float>(), image_.num_elements(), images.data<float>() + image_.num_elements());
  std::copy_n(scale_.data<float>(), 4, scales.data<float>() + 4);
  ASSERT_THAT(session.Run({{"image", images}, {"scale", scales}}, {{"logits", &logits}}), IsOk());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(logits.At(5 + i), wanted.at("logits").At(i)) << "the second of three";
}

// y = 2 x, an op and a kernel of somebody else.
class Twice : public kernels::UnaryKernel {
 public:
  explicit Twice(const kernels::KernelDesc& desc) : UnaryKernel(desc) { set_variant("theirs"); }

 private:
  void ComputeUnary(const void* x, void* y, const kernels::RunContext&) const override {
    for (int i = 0; i < 4; ++i) static_cast<float*>(y)[i] = 2 * static_cast<const float*>(x)[i];
  }
};

// Its arrays stay f16, and what it computes between is quantized as that of an FP32 network.
TEST(CompilerHalfTest, AnFp16NetworkIsQuantized) {
  onnx::ModelBuilder model(13);
  model.Input("x", {"N", 3, 8, 8}, DType::kF16);
  model.Initializer("w", onnx::Seeded({4, 3, 3, 3}, 1, DType::kF16));
  model.Node("Conv", {"x", "w"}, {"c"}, "conv").Node("Relu", {"c"}, {"y"}, "relu").Output("y", DType::kF16);
  const std::string path = ::testing::TempDir() + "/half.onnx";
  std::ofstream(path, std::ios::binary) << model.Bytes();
  ASSERT_OK_AND_ASSIGN(const Model network, Load(path));
  EXPECT_THAT(network.warnings(), ElementsAre(HasSubstr("the network is in FP16")));
  const Tensor images = onnx::Seeded({1, 3, 8, 8}, 3, DType::kF16);
  ASSERT_OK_AND_ASSIGN(const Model int8, Compile(network, {{"x", onnx::Seeded({8, 3, 8, 8}, 2, DType::kF16)}}));
  EXPECT_THAT(ir::Print(int8.graph()), HasSubstr("int8.conv2d"));
  Tensor wanted, found;
  ASSERT_OK_AND_ASSIGN(Session fp32, Prepare(network));
  ASSERT_OK_AND_ASSIGN(Session session, Prepare(int8));
  EXPECT_THAT(fp32.Run({{"x", images}}, {{"y", &wanted}}), IsOk());
  EXPECT_THAT(session.Run({{"x", images}}, {{"y", &found}}), IsOk());
  EXPECT_EQ(found.dtype(), DType::kF16);
  for (int64_t i = 0; i < wanted.num_elements(); ++i) ASSERT_NEAR(found.At(i), wanted.At(i), 0.1) << i;

  Tensor unused;
  EXPECT_THAT(session.Run({{"x", Seeded({1, 3, 8, 8}, 3)}}, {{"y", &unused}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("f16[1,3,8,8]")));
}

TEST(Library, TakesOpsAndKernelsAndSessionsShareWhatIsMade) {
  compiler::Library library;
  ir::OpSchema twice;
  twice.name = "twice";
  twice.operands = {{"input"}};
  twice.infer = [](const ir::InferCall& call) -> absl::StatusOr<ir::Type> { return ir::Type(call.tensor(0)); };
  twice.evaluate = [](const ir::EvaluateCall& call) -> absl::StatusOr<std::vector<Tensor>> {
    return std::vector<Tensor>{call.tensor(0)};  // Nothing asks for it here.
  };
  library.ops.Register(std::move(twice));
  int made = 0;
  library.kernels.Register(
      {"twice", kernels::LayoutRule::kSame,
       [&made](const kernels::KernelDesc& desc) -> absl::StatusOr<std::unique_ptr<kernels::Kernel>> {
         ++made;
         return std::make_unique<Twice>(desc);
       }});
  const std::string path = ::testing::TempDir() + "/twice.ir";
  std::ofstream(path) << "graph @g {\n  %x: f32[1,4] = placeholder\n  %y: f32[1,4] = call_function twice(%x)\n"
                         "  output(%y)\n}\n";
  EXPECT_FALSE(Load(path).ok()) << "the built-in ops lack it";
  ASSERT_OK_AND_ASSIGN(const Model model, Load(path, {}, library));
  ASSERT_OK_AND_ASSIGN(Session one, Prepare(model));
  {
    ASSERT_OK_AND_ASSIGN(const Session other, Prepare(model));
    EXPECT_EQ(made, 1) << "one kernel for both";
  }
  const Tensor x = Seeded({1, 4}, 1);
  Tensor y;
  ASSERT_THAT(one.Run({{"x", x}}, {{"y", &y}}), IsOk());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(y.At(i), 2 * x.At(i));
  SessionOptions options;
  options.threads = 2;
  ASSERT_OK_AND_ASSIGN(const Session wider, Prepare(model, options));
  EXPECT_EQ(made, 2) << "packed for the number of threads";
}

// Whatever the times are: with those of the first compilation the second chooses the same, on any machine.
TEST_F(CompilerTest, ChoosesByTimeOnceForAMachine) {
  CompileOptions options;
  QuantizeOptions quantize;
  quantize.set_precision(QuantizeOptions::FASTEST);
  for (auto& step : *options.pipeline.mutable_steps()) {
    if (step.pass().Is<QuantizeOptions>()) step.mutable_pass()->PackFrom(quantize);
  }
  options.pipeline.add_steps()->mutable_pass()->PackFrom(AutotuneOptions());
  options.tune_seconds = 0.01;
  const std::filesystem::path folder = ::testing::TempDir() + "/timings", carried = ::testing::TempDir() + "/carried";
  options.cache_folder = folder;
  const auto note = [](const Model& model) {
    for (const passes::PassReport& report : model.reports()) {
      for (const passes::Remark& remark : report.remarks) {
        if (absl::StrContains(remark.message, "fastest is")) return remark.message;
      }
    }
    return std::string();
  };
  ASSERT_OK_AND_ASSIGN(const Model first, Compile(network_, Samples(), options));
  ASSERT_OK_AND_ASSIGN(const Model second, Compile(network_, Samples(), options));
  EXPECT_THAT(note(first), HasSubstr("one run on one thread: INT8 "));
  EXPECT_EQ(note(first), note(second)) << "to the digit";
  EXPECT_EQ(ir::Print(first.graph()), ir::Print(second.graph()));

  std::filesystem::create_directory(carried);
  options.cache_folder = "";
  options.replay_folder = carried;
  EXPECT_THAT(Compile(network_, Samples(), options), StatusIs(absl::StatusCode::kNotFound, HasSubstr("no timings")));
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    const std::string name = file.path().filename();
    if (!absl::StartsWith(name, "timings-")) continue;
    names.push_back(name);
    std::filesystem::copy(file.path(), carried / name);
  }
  ASSERT_OK_AND_ASSIGN(const Model replayed, Compile(network_, Samples(), options));
  EXPECT_EQ(ir::Print(first.graph()), ir::Print(replayed.graph()));

  ASSERT_FALSE(names.empty());
  for (const std::string& name : names) {
    std::filesystem::copy(folder / name, carried / absl::StrReplaceAll(name, {{".textproto", "0.textproto"}}));
  }
  EXPECT_THAT(Compile(network_, Samples(), options),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("found 2 files")));
  for (const auto& file : std::filesystem::directory_iterator(carried)) std::filesystem::remove(file.path());
  const auto fails_with = [&](const char* message) {
    EXPECT_THAT(Compile(network_, Samples(), options), StatusIs(absl::StatusCode::kDataLoss, HasSubstr(message)));
  };
  for (const std::string& name : names) std::ofstream(carried / name) << "runs {}";
  fails_with("carried/timings-");
  ASSERT_GT(names.size(), 1);  // Each about graphs of its own: all under the next one's name.
  for (size_t i = 0; i < names.size(); ++i) {
    std::filesystem::copy(folder / names[i], carried / names[(i + 1) % names.size()],
                          std::filesystem::copy_options::overwrite_existing);
  }
  fails_with("is about other graphs");
}

// Threads that share a model's packed weights, with a pool each and with one for all.
TEST_F(CompilerTest, SessionsRunAtOnce) {
  ASSERT_OK_AND_ASSIGN(const Model quantized, Quantized());
  for (const Model& model : {network_, quantized}) {  // Floats run on oneDNN, which has state of its own.
    SessionOptions alone;
    ASSERT_OK_AND_ASSIGN(Session first, Prepare(model, alone));
    std::vector<Tensor> wanted(4);
    for (int i = 0; i < 4; ++i) {
      const Tensor image = Seeded({1, 3, 8, 8}, 100 + i);
      ASSERT_THAT(first.Run({{"image", image}, {"scale", scale_}}, {{"logits", &wanted[i]}}), IsOk());
    }
    runtime::ThreadPool pool(2);
    for (runtime::ThreadPool* shared : {static_cast<runtime::ThreadPool*>(nullptr), &pool}) {
      SessionOptions options;
      options.pool = shared;
      std::vector<std::thread> threads;
      std::vector<int> wrong(4);
      for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&, i] {
          absl::StatusOr<Session> session = Prepare(model, options);
          const Tensor image = Seeded({1, 3, 8, 8}, 100 + i);
          for (int run = 0; run < 50; ++run) {
            Tensor logits;
            const bool ran =
                session.ok() && session->Run({{"image", image}, {"scale", scale_}}, {{"logits", &logits}}).ok();
            wrong[i] += !ran || ToDoubles(logits) != ToDoubles(wanted[i]);
          }
        });
      }
      for (std::thread& thread : threads) thread.join();
      EXPECT_THAT(wrong, ElementsAre(0, 0, 0, 0));
    }
  }
}

}  // namespace
}  // namespace fuselage
