// The shipped model on real images, through reader, passes and kernels: its logits, and that INT8 has one result.
#include "absl/strings/match.h"
#include "compiler/calibration_runner.h"
#include "compiler/engine.h"
#include "frontend/onnx/onnx.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "harness/datasets/fashion_mnist.h"
#include "harness/datasets/image_samples.h"
#include "harness/datasets/preprocess.h"
#include "interpreter/interpreter.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/text.h"
#include "kernels/register_all.h"
#include "kernels/testing/emulated_amx.h"
#include "passes/core/pipeline.h"
#include "passes/register_all.h"
#include "runtime/executable.h"

namespace fuselage::harness {
namespace {

constexpr char kModel[] = "models/resnet18_fashion_mnist.onnx";
constexpr char kFloatPipeline[] = R"(
  steps { pass { [type.googleapis.com/fuselage.NormalizeOptions] {} } }
  steps { pass { [type.googleapis.com/fuselage.ConvBnOptions] {} } }
  steps { pass { [type.googleapis.com/fuselage.FusionOptions] {} } })";
constexpr char kInt8Pipeline[] = R"(
  steps { pass { [type.googleapis.com/fuselage.QuantizeOptions] {} } }
  steps { pass { [type.googleapis.com/fuselage.QuantLiftOptions] {} } }
  steps { pass { [type.googleapis.com/fuselage.LowerOptions] {} } }
  steps { pass { [type.googleapis.com/fuselage.Int8FusionOptions] {} } }
  steps { pass { [type.googleapis.com/fuselage.CleanupOptions] {} } })";

constexpr int kImages = 4;
constexpr int kLabels[kImages] = {9, 2, 1, 1};
// PyTorch's, in FP32 (models/README.md).
constexpr float kLogits[kImages][10] = {
    {-1.0812, -0.4438, -0.7943, -1.1392, -0.6795, -0.2814, -0.9654, 2.3180, -2.0335, 5.3310},
    {-0.5044, -0.7114, 6.2698, -0.3209, 0.4580, -0.7830, -0.3650, -1.1707, -1.3121, -1.1390},
    {-0.0840, 6.1712, -0.1296, -1.7078, -0.7561, -0.9851, -0.8371, -0.2714, -0.9171, -0.3399},
    {-0.0214, 5.6483, -0.2704, -1.8556, -1.8571, -0.6946, 0.1323, -0.4268, -0.5820, 0.1109}};
constexpr float kTolerance = 1e-3f;

class ResNet18Test : public ::testing::Test {
 protected:
  void SetUp() override {
    ops::RegisterAll(ops_);
    kernels::RegisterAll(kernels_);
    passes::RegisterAll(passes_);
    datasets::PreprocessOptions options;
    options.height = options.width = 224;
    options.channels = 3;
    options.mean = {0.2860f};
    options.std = {0.3530f};
    ASSERT_OK_AND_ASSIGN(preprocessor_, datasets::Preprocessor::Create(options));
    ASSERT_OK_AND_ASSIGN(train_, datasets::OpenFashionMnist(datasets::FashionMnistFolder(), /*train=*/true));
    ASSERT_OK_AND_ASSIGN(test_, datasets::OpenFashionMnist(datasets::FashionMnistFolder(), /*train=*/false));
  }

  void RunPasses(const char* pipeline, ir::Graph& graph, int threads) {
    PipelineConfig config;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(pipeline, &config));
    runtime::ThreadPool pool(threads);
    const datasets::ImageSamples samples(*train_, *preprocessor_, &pool);
    compiler::CalibrationOptions options;
    options.samples = 2;
    compiler::CalibrationRunner runner(samples, &pool, options);
    passes::PassEnvironment environment;
    environment.runner = &runner;
    environment.kernels = &kernels_;
    ASSERT_OK(passes::RunPipeline(config, passes_, environment, graph));
  }

  // The imported graph after the float pipeline, and after the INT8 pipeline where asked for.
  std::unique_ptr<ir::Graph> Compile(bool int8, int threads = 2) {
    absl::StatusOr<std::unique_ptr<ir::Graph>> graph = onnx::Load(kModel, ops_);
    EXPECT_OK(graph);
    if (!graph.ok()) return nullptr;
    RunPasses(kFloatPipeline, **graph, threads);
    if (int8) RunPasses(kInt8Pipeline, **graph, threads);
    return *std::move(graph);
  }

  // The logits of test images [first, first + batch).
  Tensor Logits(const ir::Graph& graph, int first, int batch, int threads, kernels::Isa isa = kernels::BestIsa()) {
    return LogitsOn(kernels_, graph, first, batch, threads, isa);
  }

  Tensor LogitsOn(const kernels::KernelRegistry& kernels, const ir::Graph& graph, int first, int batch, int threads,
                  kernels::Isa isa = kernels::BestIsa()) {
    runtime::ThreadPool pool(threads);
    compiler::EngineOptions options;
    options.isa = isa;
    const auto engine = compiler::MakeEngine(graph, batch, kernels, &pool, options);
    EXPECT_OK(engine);
    const datasets::ImageSamples samples(*test_, *preprocessor_, &pool);
    const auto outputs = (*engine)->Run(*samples.Batch(first, (*engine)->input_types()));
    EXPECT_OK(outputs);
    return (**outputs)[0];
  }

  Tensor InterpreterLogits(const ir::Graph& graph, int image) {
    runtime::ThreadPool pool(2);
    const datasets::ImageSamples samples(*test_, *preprocessor_, &pool);
    const std::vector<Tensor> inputs = *samples.Batch(image, {graph.placeholders()[0]->tensor_type()});
    absl::StatusOr<std::vector<Tensor>> outputs = interpreter::Run(graph, inputs);
    EXPECT_OK(outputs);
    return (*outputs)[0];
  }

  ir::OpRegistry ops_;
  kernels::KernelRegistry kernels_;
  passes::PassRegistry passes_;
  std::unique_ptr<datasets::ImageDataset> train_, test_;
  std::optional<datasets::Preprocessor> preprocessor_;
};

TEST_F(ResNet18Test, LogitsOfTheFirstTestImages) {
  const std::unique_ptr<ir::Graph> graph = Compile(/*int8=*/false);
  EXPECT_EQ(test_->size(), 10000);
  for (int batch : {1, kImages}) {
    for (int first = 0; first < kImages; first += batch) {
      const Tensor logits = Logits(*graph, first, batch, /*threads=*/2);
      ASSERT_EQ(logits.shape(), (Shape{batch, 10}));
      for (int row = 0; row < batch; ++row) {
        EXPECT_EQ(test_->label(first + row), kLabels[first + row]);
        for (int i = 0; i < 10; ++i) {
          EXPECT_NEAR(logits.data<float>()[row * 10 + i], kLogits[first + row][i], kTolerance)
              << "image " << first + row << ", class " << i << ", batch " << batch;
        }
      }
    }
  }
}

TEST_F(ResNet18Test, InterpreterAgreesWithOneDnnOnTheWholeNetwork) {
  const std::unique_ptr<ir::Graph> graph = Compile(/*int8=*/false);
  for (int image = 0; image < 2; ++image) {
    const Tensor kernels = Logits(*graph, image, 1, /*threads=*/1), oracle = InterpreterLogits(*graph, image);
    double largest = 0;
    for (double logit : ToDoubles(oracle)) largest = std::max(largest, std::abs(logit));
    for (int i = 0; i < 10; ++i) EXPECT_NEAR(kernels.At(i), oracle.At(i), 1e-4 * largest);
  }
}

TEST_F(ResNet18Test, Int8HasTheSameBitsOnEveryIsaForAnyThreadsAndInTheInterpreter) {
  const std::unique_ptr<ir::Graph> graph = Compile(/*int8=*/true);
  const Tensor wanted = Logits(*graph, 0, 1, /*threads=*/1, kernels::Isa::kScalar);
  EXPECT_TRUE(InterpreterLogits(*graph, 0).SameBytes(wanted)) << "interpreter";
  for (const kernels::Isa isa : kernels::SupportedIsas()) {
    for (int threads : {1, 2, 3}) {
      EXPECT_TRUE(Logits(*graph, 0, 1, threads, isa).SameBytes(wanted)) << kernels::IsaName(isa) << ", " << threads;
    }
  }
  // Their kernels are tested by emulation in kernels/int8.
  for (const kernels::Isa isa : kernels::AllIsas()) {
    if (!kernels::CpuSupports(isa)) GTEST_SKIP() << "this CPU has no " << kernels::IsaName(isa);
  }
}

// Two images, since a batch has a layout of its own.
TEST_F(ResNet18Test, Int8HasTheSameBitsOnEmulatedAmx) {
  const std::unique_ptr<ir::Graph> graph = Compile(/*int8=*/true);
  kernels::KernelRegistry amx;
  kernels::RegisterAllOnEmulatedAmx(amx);
  runtime::ThreadPool pool(1);
  ASSERT_OK_AND_ASSIGN(const auto executable, runtime::Executable::Create(*graph, amx, &pool));
  int in_tiles = 0, with_halo = 0;
  for (const runtime::StepProfile& step : executable->profile()) {
    EXPECT_NE(step.op, "reorder");
    in_tiles += absl::StartsWith(step.variant, "amx_emulated");
    with_halo += absl::StrContains(step.layout, "halo");
  }
  EXPECT_EQ(in_tiles, 20) << "convolutions";
  EXPECT_EQ(executable->profile()[0].layout, "nhwc, space to depth, halo 2, 16 bytes a pixel") << "the stem's input";
  EXPECT_GE(with_halo, 15);
  const Tensor wanted = Logits(*graph, 0, 2, /*threads=*/2);
  EXPECT_TRUE(LogitsOn(amx, *graph, 0, 2, /*threads=*/2).SameBytes(wanted));
}

TEST_F(ResNet18Test, TenCompilationsGiveOneProgram) {
  std::string text;
  for (int i = 0; i < 10; ++i) {
    const std::unique_ptr<ir::Graph> graph = Compile(/*int8=*/true, /*threads=*/1 + i % 2);
    if (text.empty()) text = ir::Print(*graph);
    EXPECT_EQ(ir::Print(*graph), text) << "compilation " << i;
  }
}

}  // namespace
}  // namespace fuselage::harness
