// Quantized networks have the same codes on every machine: scales, zero points and int8 weights do not depend on the
// instruction set that calibration ran on, and are those that are written down here.
#include <algorithm>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/substitute.h"
#include "compiler/calibration_runner.h"
#include "frontend/fx/fx.h"
#include "frontend/onnx/onnx.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "harness/datasets/fashion_mnist.h"
#include "harness/datasets/image_samples.h"
#include "harness/datasets/preprocess.h"
#include "ir/base/sha256.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "kernels/fused_elementwise/fused_elementwise.h"
#include "kernels/movement/movement.h"
#include "kernels/reproducible/emulated.h"
#include "kernels/reproducible/reproducible.h"
#include "passes/core/pipeline.h"
#include "passes/register_all.h"

namespace fuselage::harness {
namespace {

using kernels::Isa;

constexpr char kPipeline[] = R"(
  steps { pass { [type.googleapis.com/fuselage.NormalizeOptions] {} } }
  steps { pass { [type.googleapis.com/fuselage.ConvBnOptions] {} } }
  steps { pass { [type.googleapis.com/fuselage.FusionOptions] {} } }
  steps { pass { [type.googleapis.com/fuselage.QuantizeOptions] { $0 } } })";
constexpr char kDefault[] = "", kMinMax[] = "observer { min_max {} }", kEntropy[] = "observer { entropy {} }";

struct Network {
  std::string path;
  const char* observer;
  // The digest of Codes() after calibration on the first training images, or on random inputs. Differs from what
  // another machine finds: one of them calibrates wrongly. Differs from what the last commit found: arithmetic or
  // pipeline changed.
  std::string fingerprint;
};
void PrintTo(const Network& network, std::ostream* os) { *os << network.path; }

// The types of all codes in the order of the nodes, and the weights by content.
std::string Codes(const ir::Graph& graph) {
  std::string text;
  for (const ir::Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (node->IsOp("quantize")) absl::StrAppend(&text, ToString(node->type()), "\n");
    if (node->op() == nullptr || node->op()->OperandIndex("weight") < 0) continue;
    const Tensor* weight = graph.ParameterOfOrNull(*node, "weight");
    if (weight == nullptr || !weight->type().quant.has_value()) continue;
    absl::StrAppend(&text, node->op()->name, " ", ToString(weight->type()), " ", absl::Hex(Fingerprint(*weight)), "\n");
  }
  return text;
}

std::string FingerprintOf(const std::string& text) {
  Sha256 sha256;
  sha256.Update(text);
  return sha256.Finish().substr(0, 16);
}

class QuantizedCodes : public ::testing::Test {
 protected:
  void SetUp() override {
    ops::RegisterAll(ops_);
    passes::RegisterAll(passes_);
    datasets::PreprocessOptions options;
    options.height = options.width = 224;
    options.channels = 3;
    options.mean = {0.2860f};
    options.std = {0.3530f};
    ASSERT_OK_AND_ASSIGN(preprocessor_, datasets::Preprocessor::Create(options));
  }

  std::string Calibrated(const Network& network, Isa isa, const kernels::KernelRegistry* kernels = nullptr) {
    const std::string& path = network.path;
    runtime::ThreadPool pool(2);
    absl::StatusOr<std::unique_ptr<ir::Graph>> graph =
        absl::EndsWith(path, ".onnx") ? onnx::Load(path, ops_) : fx::Load(path, ops_);
    EXPECT_OK(graph);
    std::unique_ptr<compiler::Samples> samples = std::make_unique<compiler::RandomSamples>(7, 3, &pool);
    std::unique_ptr<datasets::ImageDataset> train;
    compiler::CalibrationOptions options{3, 0, isa, kernels, nullptr};
    if (absl::StrContains(path, "fashion_mnist")) {
      train = *datasets::OpenFashionMnist(datasets::FashionMnistFolder(), /*train=*/true);
      samples = std::make_unique<datasets::ImageSamples>(*train, *preprocessor_, &pool);
      options.samples = 1;  // In scalar code, an image takes seconds.
    }
    compiler::CalibrationRunner runner(*samples, &pool, options);
    passes::PassEnvironment environment;
    environment.runner = &runner;
    PipelineConfig pipeline;
    EXPECT_TRUE(
        google::protobuf::TextFormat::ParseFromString(absl::Substitute(kPipeline, network.observer), &pipeline));
    EXPECT_OK(passes::RunPipeline(pipeline, passes_, environment, **graph));
    return Codes(**graph);
  }

  ir::OpRegistry ops_;
  passes::PassRegistry passes_;
  std::optional<datasets::Preprocessor> preprocessor_;
};

class QuantizedCodesTest : public QuantizedCodes, public ::testing::WithParamInterface<Network> {};

TEST_P(QuantizedCodesTest, AreTheSameOnEveryInstructionSet) {
  const std::string wanted = Calibrated(GetParam(), kernels::BestIsa());
  EXPECT_GE(std::count(wanted.begin(), wanted.end(), '\n'), 2) << "an activation and a weight, of\n" << wanted;
  EXPECT_EQ(FingerprintOf(wanted), GetParam().fingerprint) << "of\n" << wanted.substr(0, 2000);
  for (const reproducible::Primitives& primitives : reproducible::AllPrimitives()) {
    if (!kernels::CpuSupports(primitives.isa)) continue;
    EXPECT_EQ(Calibrated(GetParam(), primitives.isa), wanted) << primitives.name;
  }
}

TEST_P(QuantizedCodesTest, AreTheSameOnEmulatedAvx512) {
  const reproducible::Primitives row = reproducible::EmulatedAvx512();
  kernels::KernelRegistry emulated;
  reproducible::RegisterWith({&row, 1}, emulated);
  fused_elementwise::Register(emulated);
  movement::Register(emulated);
  EXPECT_EQ(FingerprintOf(Calibrated(GetParam(), Isa::kScalar, &emulated)), GetParam().fingerprint);
}

constexpr char kResNet18[] = "72e13c0e6fc7e038";

TEST_F(QuantizedCodes, OfTheFxFormAreThoseOfOnnx) {
  const Network network{"models/fx/resnet18_fashion_mnist.ir", kDefault, kResNet18};
  EXPECT_EQ(FingerprintOf(Calibrated(network, kernels::BestIsa())), network.fingerprint);
}

// The configs' networks, and what PyTorch exports of small ones of other kinds.
const Network kNetworks[] = {
    {"models/resnet18_fashion_mnist.onnx", kDefault, kResNet18},
    {"harness/configs/models/gated_block.ir", kEntropy, "4c8bc7b72e6fa029"},
    {"frontend/fx/examples/cnn.ir", kEntropy, "cfde411fef74aace"},
    {"frontend/fx/examples/cnn.ir", kMinMax, "ced78710181d33b3"},
    {"frontend/fx/examples/layers.ir", kEntropy, "4efb26c78c02ee5d"},
    {"frontend/fx/examples/mobile.ir", kEntropy, "91e130837c7e3cc2"},
    {"frontend/fx/examples/resnet_block_functional.ir", kEntropy, "08dea815a5da1715"},
    {"frontend/fx/examples/transformer.ir", kEntropy, "923fb659c634c460"},
};

INSTANTIATE_TEST_SUITE_P(Networks, QuantizedCodesTest, ::testing::ValuesIn(kNetworks), [](const auto& info) {
  const std::vector<std::string> parts = absl::StrSplit(info.param.path, absl::ByAnyChar("/."));
  return absl::StrCat(parts[parts.size() - 2], info.param.observer == kMinMax ? "_min_max" : "");
});

}  // namespace
}  // namespace fuselage::harness
