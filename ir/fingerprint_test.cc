#include "ir/fingerprint.h"

#include <gtest/gtest.h>

#include "ir/testing/matchers.h"
#include "ir/testing/tiny_ops.h"
#include "ir/text.h"

namespace fuselage::ir {
namespace {

constexpr absl::string_view kText = R"(graph @g {
  param @p: f32[1] = [2]
  param @s: f32[4] = seed(3)
  module @m = scale(factors=[0.5], steps=[1], weight=@p)
  %x: f32[4] = placeholder
  %k: f32[4] = get_attr @s
  %a: f32[4] = call_module @m(%x)
  %b: f32[4] = call_function relu(%a, slope=0.25) from(c, d)
  %e: f32[4] = call_method torch.relu(%a)
  %f: f32[4] = call_function add(%b, %e)
  output(%f, %k)
}
)";

class FingerprintTest : public ::testing::Test {
 protected:
  FingerprintTest() { fuselage::testing::RegisterTinyOps(ops_); }

  std::unique_ptr<Graph> MakeGraph(absl::string_view text = kText) const {
    absl::StatusOr<std::unique_ptr<Graph>> graph = Parse(text, ops_);
    EXPECT_OK(graph);
    return *std::move(graph);
  }

  OpRegistry ops_;
};

TEST_F(FingerprintTest, OfEqualGraphsIsEqual) {
  const std::unique_ptr<Graph> graph = MakeGraph();
  EXPECT_EQ(Fingerprint(*graph), Fingerprint(*graph->Clone()));
  EXPECT_EQ(Fingerprint(*graph), Fingerprint(*MakeGraph()));
}

// Whatever the text shows, the fingerprint sees.
TEST_F(FingerprintTest, SeesEachPartOfTheText) {
  const std::pair<absl::string_view, absl::string_view> kEdits[] = {
      {"graph @g", "graph @h"},
      {"f32[1] = [2]", "f32[1] = [3]"},
      {"seed(3)", "seed(4)"},
      {"seed(3)", "[1, 2, 3, 4]"},
      {"factors=[0.5]", "factors=[0.25]"},
      {"steps=[1]", "steps=[1, 0]"},
      {"slope=0.25", "slope=0.5"},
      {"from(c, d)", "from(cd)"},
      {" from(c, d)", ""},
      {"call_method torch.relu", "call_function torch.relu"},
      {"torch.relu", "relu"},
      {"add(%b, %e)", "add(%e, %b)"},
      {"output(%f, %k)", "output(%k, %f)"},
      {"output(%f, %k)", "output(%f)"},
      {"weight=@p)", "weight=@p)\n  module @n = relu()"},
      {"%x: f32[4] = placeholder\n  %k: f32[4] = get_attr @s", "%k: f32[4] = get_attr @s\n  %x: f32[4] = placeholder"},
  };
  const uint64_t original = Fingerprint(*MakeGraph());
  for (const auto& [from, to] : kEdits) {
    std::string text(kText);
    text.replace(text.find(std::string(from)), from.size(), std::string(to));
    EXPECT_NE(Fingerprint(*MakeGraph(text)), original) << from << " -> " << to;
  }
}

TEST_F(FingerprintTest, SeesTypesAndUnprintedValues) {
  const auto of_input = [this](TensorType type) {
    Graph graph("g", ops_);
    EXPECT_OK(graph.AddOutput({*graph.AddPlaceholder("x", std::move(type))}));
    return Fingerprint(graph);
  };
  const uint64_t plain = of_input({DType::kU8, {2, 3}, std::nullopt, Layout::kRowMajor});
  EXPECT_NE(of_input({DType::kI8, {2, 3}, std::nullopt, Layout::kRowMajor}), plain);
  EXPECT_NE(of_input({DType::kU8, {3, 2}, std::nullopt, Layout::kRowMajor}), plain);
  EXPECT_NE(of_input({DType::kU8, {2, 3}, std::nullopt, Layout::kNhwc}), plain);
  const uint64_t codes = of_input({DType::kU8, {2, 3}, PerTensor(0.5f, 1), Layout::kRowMajor});
  EXPECT_NE(codes, plain);
  EXPECT_NE(of_input({DType::kU8, {2, 3}, PerTensor(0.5f, 2), Layout::kRowMajor}), codes);
  EXPECT_NE(of_input({DType::kU8, {2, 3}, PerTensor(0.25f, 1), Layout::kRowMajor}), codes);
  EXPECT_NE(of_input({DType::kU8, {2, 3}, PerAxis(0, {0.5f, 0.5f}), Layout::kRowMajor}),
            of_input({DType::kU8, {2, 2}, PerAxis(1, {0.5f, 0.5f}), Layout::kRowMajor}));

  const auto of_parameter = [this](uint64_t seed) {
    Graph graph("g", ops_);
    const TensorType type{DType::kF32, {100}, std::nullopt, Layout::kRowMajor};
    graph.AddParameter("p", std::make_shared<const Tensor>(SeededTensor(type, seed)));
    EXPECT_OK(graph.AddOutput({*graph.AddPlaceholder("x", type)}));
    return Fingerprint(graph);
  };
  EXPECT_EQ(of_parameter(1), of_parameter(1));
  EXPECT_NE(of_parameter(1), of_parameter(2));
}

}  // namespace
}  // namespace fuselage::ir
