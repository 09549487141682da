// The checked-in exports of frontend/fx/examples/examples.py: they load, compute what PyTorch computed, and mean the
// same in every spelling.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "frontend/fx/fx.h"
#include "gtest/gtest.h"
#include "interpreter/interpreter.h"
#include "ir/ops/register_all.h"
#include "ir/safetensors.h"
#include "ir/testing/matchers.h"
#include "ir/text.h"
#include "passes/conv_bn/conv_bn.h"
#include "passes/normalize/normalize.h"

namespace fuselage::fx {
namespace {

constexpr char kFolder[] = "frontend/fx/examples/";
constexpr double kTolerance = 1e-5;  // Of the largest output: PyTorch adds in float, in an order of its own.

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
}

double LargestMagnitude(const Tensor& tensor) {
  double largest = 0;
  for (double value : ToDoubles(tensor)) largest = std::max(largest, std::abs(value));
  return largest;
}

class ExamplesTest : public ::testing::TestWithParam<const char*> {
 protected:
  ExamplesTest() { ops::RegisterAll(ops_); }

  std::unique_ptr<ir::Graph> LoadExample(absl::string_view name) {
    absl::StatusOr<std::unique_ptr<ir::Graph>> graph = Load(absl::StrCat(kFolder, name, ".ir"), ops_);
    EXPECT_OK(graph);
    return graph.ok() ? *std::move(graph) : nullptr;
  }

  template <typename Pass>
  void Run(const Pass& pass, ir::Graph& graph) {
    passes::Remarks remarks;
    EXPECT_OK(pass.Run(graph, remarks));
  }

  // PyTorch's inputs give PyTorch's outputs.
  void ExpectPyTorchsOutputs(absl::string_view name, const ir::Graph& graph) {
    ASSERT_OK_AND_ASSIGN(const ir::TensorMap expected,
                         ir::ReadSafetensors(absl::StrCat(kFolder, name, ".expected.safetensors")));
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < graph.placeholders().size(); ++i) {
      inputs.push_back(*expected.at(absl::StrCat("input.", i)));
    }
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs, interpreter::Run(graph, inputs));
    ASSERT_EQ(outputs.size() + inputs.size(), expected.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Tensor& wanted = *expected.at(absl::StrCat("output.", i));
      ASSERT_EQ(outputs[i].type(), wanted.type()) << "output " << i;
      const double tolerance = kTolerance * LargestMagnitude(wanted);
      for (int64_t k = 0; k < wanted.num_elements(); ++k) {
        ASSERT_NEAR(outputs[i].At(k), wanted.At(k), tolerance) << "output " << i << ", element " << k;
      }
    }
  }

  ir::OpRegistry ops_;
};

TEST_P(ExamplesTest, PrintsAsItWasWritten) {
  const std::unique_ptr<ir::Graph> graph = LoadExample(GetParam());
  ASSERT_NE(graph, nullptr);
  EXPECT_EQ(ir::Print(*graph), ReadFile(absl::StrCat(kFolder, GetParam(), ".ir")));
}

TEST_P(ExamplesTest, ComputesWhatPyTorchComputed) {
  const std::unique_ptr<ir::Graph> graph = LoadExample(GetParam());
  ASSERT_NE(graph, nullptr);
  ExpectPyTorchsOutputs(GetParam(), *graph);
  Run(normalize::Normalize({}), *graph);
  ExpectPyTorchsOutputs(GetParam(), *graph);
}

INSTANTIATE_TEST_SUITE_P(All, ExamplesTest,
                         ::testing::Values("mlp", "linear_relu", "patterns", "conv_bn", "cnn", "resnet_block_modules",
                                           "resnet_block_functional", "resnet_block_torch", "resnet_block_methods",
                                           "resnet_block_in_place", "activations", "shapes", "layers"),
                         [](const auto& info) { return std::string(info.param); });

TEST_F(ExamplesTest, SpellingsOfABlockNormalizeToOneText) {
  std::string text;
  for (const char* spelling : {"modules", "functional", "torch", "methods", "in_place"}) {
    const std::unique_ptr<ir::Graph> graph = LoadExample(absl::StrCat("resnet_block_", spelling));
    ASSERT_NE(graph, nullptr);
    Run(normalize::Normalize({}), *graph);
    if (text.empty()) text = ir::Print(*graph);
    EXPECT_EQ(ir::Print(*graph), text) << spelling;
  }
}

TEST_F(ExamplesTest, NodeCounts) {
  const std::map<std::string, int> kNodes = {{"mlp", 5}, {"linear_relu", 7}, {"patterns", 13}, {"conv_bn", 9}};
  for (const auto& [name, nodes] : kNodes) {
    const std::unique_ptr<ir::Graph> graph = LoadExample(name);
    ASSERT_NE(graph, nullptr);
    EXPECT_EQ(graph->num_nodes(), nodes) << name;
  }
}

TEST_F(ExamplesTest, BatchNormsFoldIntoTheirConvolutions) {
  const std::unique_ptr<ir::Graph> graph = LoadExample("conv_bn");
  ASSERT_NE(graph, nullptr);
  Run(normalize::Normalize({}), *graph);
  Run(conv_bn::ConvBn({}), *graph);
  EXPECT_EQ(graph->num_nodes(), 7);
  ExpectPyTorchsOutputs("conv_bn", *graph);
}

// The view's 0 stands for x.size(0).
TEST_F(ExamplesTest, TheBatchOfAViewCanChange) {
  const std::unique_ptr<ir::Graph> graph = LoadExample("cnn");
  ASSERT_NE(graph, nullptr);
  ASSERT_OK(graph->SetBatch(5));
  EXPECT_EQ(graph->output()->operand(0)->tensor_type().shape, (Shape{5, 10}));
}

}  // namespace
}  // namespace fuselage::fx
