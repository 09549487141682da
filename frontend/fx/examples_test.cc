// The exported examples load, compute what PyTorch computed, and mean the same in every spelling.
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "frontend/fx/testing.h"
#include "gtest/gtest.h"
#include "interpreter/interpreter.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/text.h"
#include "passes/conv_bn/conv_bn.h"
#include "passes/normalize/normalize.h"

namespace fuselage::fx {
namespace {

class ExamplesTest : public ::testing::TestWithParam<std::string> {
 protected:
  ExamplesTest() { ops::RegisterAll(ops_); }

  Example Get(absl::string_view name) {
    absl::StatusOr<Example> example = LoadExample(name, ops_);
    EXPECT_OK(example);
    return example.ok() ? *std::move(example) : Example{std::make_unique<ir::Graph>("none", ops_), {}, {}};
  }

  void ExpectPyTorchsOutputs(const Example& example) {
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs, interpreter::Run(*example.graph, example.inputs));
    EXPECT_OK(CompareOutputs(outputs, example.outputs));
  }

  template <typename Pass>
  void Run(const Pass& pass, ir::Graph& graph) {
    passes::Remarks remarks;
    EXPECT_OK(pass.Run(graph, remarks));
  }

  ir::OpRegistry ops_;
};

TEST_P(ExamplesTest, PrintsAsItWasWritten) {
  std::ifstream in(ExamplePath(GetParam()), std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  EXPECT_EQ(ir::Print(*Get(GetParam()).graph), text);
}

TEST_P(ExamplesTest, ComputesWhatPyTorchComputed) {
  const Example example = Get(GetParam());
  ExpectPyTorchsOutputs(example);
  Run(normalize::Normalize({}), *example.graph);
  ExpectPyTorchsOutputs(example);
}

INSTANTIATE_TEST_SUITE_P(All, ExamplesTest, ::testing::ValuesIn(ExampleNames()),
                         [](const auto& info) { return info.param; });

TEST_F(ExamplesTest, SpellingsOfABlockNormalizeToOneText) {
  std::string text;
  for (const char* spelling : {"modules", "functional", "torch", "methods", "in_place"}) {
    const Example example = Get(absl::StrCat("resnet_block_", spelling));
    Run(normalize::Normalize({}), *example.graph);
    if (text.empty()) text = ir::Print(*example.graph);
    EXPECT_EQ(ir::Print(*example.graph), text) << spelling;
  }
}

TEST_F(ExamplesTest, NodeCounts) {
  const std::map<std::string, int> kNodes = {{"mlp", 5}, {"linear_relu", 7}, {"patterns", 13}, {"conv_bn", 9}};
  for (const auto& [name, nodes] : kNodes) EXPECT_EQ(Get(name).graph->num_nodes(), nodes) << name;
}

TEST_F(ExamplesTest, BatchNormsFoldIntoTheirConvolutions) {
  const Example example = Get("conv_bn");
  Run(normalize::Normalize({}), *example.graph);
  Run(conv_bn::ConvBn({}), *example.graph);
  EXPECT_EQ(example.graph->num_nodes(), 7);
  ExpectPyTorchsOutputs(example);
}

// The view's 0 stands for x.size(0).
TEST_F(ExamplesTest, TheBatchOfAViewCanChange) {
  for (const char* name : {"cnn", "transformer"}) {
    const Example example = Get(name);
    ASSERT_OK(example.graph->SetBatch(5));
    EXPECT_EQ(example.graph->output()->operand(0)->tensor_type().shape[0], 5) << name;
  }
}

}  // namespace
}  // namespace fuselage::fx
