// The shipped model as torch.fx exports it in functional form: the same network as from ONNX after every pass, and the
// same bits in INT8.
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/calibration_runner.h"
#include "compiler/engine.h"
#include "frontend/fx/fx.h"
#include "frontend/onnx/onnx.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "harness/datasets/fashion_mnist.h"
#include "harness/datasets/image_samples.h"
#include "harness/datasets/preprocess.h"
#include "harness/load_config.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "kernels/register_all.h"
#include "passes/core/pipeline.h"
#include "passes/register_all.h"

namespace fuselage::harness {
namespace {

constexpr char kOnnx[] = "models/resnet18_fashion_mnist.onnx";
constexpr char kFx[] = "models/fx/resnet18_fashion_mnist.ir";
constexpr char kPipeline[] = R"(
  steps { pass { [type.googleapis.com/fuselage.NormalizeOptions] {} } }
  steps { pass { [type.googleapis.com/fuselage.ConvBnOptions] {} } }
  steps { pass { [type.googleapis.com/fuselage.FusionOptions] {} } }
  steps { pass { [type.googleapis.com/fuselage.QuantizeOptions] {} } }
  steps { pass { [type.googleapis.com/fuselage.QuantLiftOptions] {} } }
  steps { pass { [type.googleapis.com/fuselage.LowerOptions] {} } }
  steps { pass { [type.googleapis.com/fuselage.Int8FusionOptions] {} } }
  steps { pass { [type.googleapis.com/fuselage.CleanupOptions] {} } })";
constexpr int kFloatSteps = 3;
constexpr int kImages = 2;

// A graph without its names: op, attributes, parameters by content, operands by position.
std::string Structure(const ir::Graph& graph) {
  std::map<const ir::Node*, int> position;
  std::string text;
  for (const ir::Node* node = graph.first(); node != nullptr; node = node->next()) {
    const int index = static_cast<int>(position.size());
    position[node] = index;
    absl::StrAppend(&text, index, ": ", ToString(node->type()), " ", ir::NodeKindName(node->kind()));
    if (node->op() != nullptr) {
      absl::StrAppend(&text, " ", node->op()->name);
      for (const auto& [name, value] : node->attributes()) absl::StrAppend(&text, " ", name, "=", value.ToString());
      for (const ir::OperandSpec& spec : node->op()->operands) {
        const Tensor* parameter = spec.parameter ? graph.ParameterOfOrNull(*node, spec.name) : nullptr;
        if (parameter != nullptr) absl::StrAppend(&text, " ", spec.name, "=#", absl::Hex(Fingerprint(*parameter)));
      }
    }
    for (const ir::Node* operand : node->operands()) {
      absl::StrAppend(&text, operand == nullptr ? " none" : absl::StrCat(" %", position[operand]));
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

class ResNet18FxTest : public ::testing::Test {
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
    ASSERT_OK_AND_ASSIGN(onnx_, onnx::Load(kOnnx, ops_));
    ASSERT_OK_AND_ASSIGN(fx_, fx::Load(kFx, ops_));
  }

  // Runs the steps [begin, end) of the pipeline.
  void RunSteps(ir::Graph& graph, int begin, int end) {
    PipelineConfig all, config;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(kPipeline, &all));
    for (int i = begin; i < std::min(end, all.steps_size()); ++i) *config.add_steps() = all.steps(i);
    const datasets::ImageSamples samples(*train_, *preprocessor_, &pool_);
    compiler::CalibrationOptions options;
    options.samples = kImages;
    compiler::CalibrationRunner runner(samples, &pool_, options);
    passes::PassEnvironment environment;
    environment.runner = &runner;
    environment.kernels = &kernels_;
    ASSERT_OK(passes::RunPipeline(config, passes_, environment, graph));
  }

  Tensor Logits(const ir::Graph& graph) {
    const auto engine = compiler::MakeEngine(graph, kImages, kernels_, &pool_, compiler::EngineOptions());
    EXPECT_OK(engine);
    const datasets::ImageSamples samples(*test_, *preprocessor_, &pool_);
    const auto outputs = (*engine)->Run(*samples.Batch(0, (*engine)->input_types()));
    EXPECT_OK(outputs);
    return (**outputs)[0];
  }

  ir::OpRegistry ops_;
  kernels::KernelRegistry kernels_;
  passes::PassRegistry passes_;
  runtime::ThreadPool pool_{2};
  std::unique_ptr<datasets::ImageDataset> train_, test_;
  std::optional<datasets::Preprocessor> preprocessor_;
  std::unique_ptr<ir::Graph> onnx_, fx_;
};

TEST_F(ResNet18FxTest, EveryFloatPassGivesTheGraphOfTheOnnxModel) {
  for (int step = 0; step < kFloatSteps; ++step) {
    RunSteps(*onnx_, step, step + 1);
    RunSteps(*fx_, step, step + 1);
    EXPECT_EQ(Structure(*fx_), Structure(*onnx_)) << "after step " << step;
  }
}

TEST_F(ResNet18FxTest, Int8HasTheSameBitsAsFromOnnx) {
  constexpr int kAll = 100;
  RunSteps(*onnx_, 0, kAll);
  RunSteps(*fx_, 0, kAll);
  EXPECT_EQ(Structure(*fx_), Structure(*onnx_));
  const Tensor logits = Logits(*fx_);
  EXPECT_EQ(logits.shape(), (Shape{kImages, 10}));
  EXPECT_TRUE(logits.SameBytes(Logits(*onnx_)));
}

TEST_F(ResNet18FxTest, TheShippedConfigNamesIt) {
  SearchPath search;
  search.runfiles = search.caller = std::filesystem::current_path();
  ASSERT_OK_AND_ASSIGN(const LoadedConfig loaded, LoadConfig("resnet18_fx.textproto", search, {}));
  EXPECT_EQ(loaded.config.model().path(), kFx);
  EXPECT_GT(loaded.config.pipeline().steps_size(), kFloatSteps);
}

}  // namespace
}  // namespace fuselage::harness
