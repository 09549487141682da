#include "passes/quant_lift/quant_lift.h"

#include <gtest/gtest.h>

#include <ctime>

#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/text.h"

namespace fuselage::quant_lift {
namespace {

using ir::Node;

const ir::OpRegistry& Ops() {
  static const ir::OpRegistry* const ops = [] {
    auto* registry = new ir::OpRegistry();
    ops::RegisterAll(*registry);
    return registry;
  }();
  return *ops;
}

// The promise is for optimized builds. Sanitizers and debug builds are slower by a factor; a quadratic pass is slower
// by thousands, and fails there too.
#ifdef NDEBUG
constexpr double kCpuSeconds = 1.0;
#else
constexpr double kCpuSeconds = 20.0;
#endif

// Of this process: the machine may be busy.
double CpuSeconds(ir::Graph& graph, passes::Remarks& remarks) {
  const std::clock_t start = std::clock();
  EXPECT_OK(QuantLift().Run(graph, remarks));
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

AttributeMap Scale(double scale) { return {{"scales", std::vector<double>{scale}}}; }

// 100,000 nodes take under a second.
TEST(QuantLiftTest, CostIsLinear) {
  const auto build = [](int blocks) {
    auto graph = std::make_unique<ir::Graph>("long", Ops());
    Node* x = *graph->AddPlaceholder("x", TensorType{DType::kF32, {2, 6}, std::nullopt, Layout::kRowMajor});
    for (int i = 0; i < blocks; ++i) {  // 5 nodes: a view with two equal quantizes, one of them read.
      Node* v = *graph->AddFunction("v", "reshape", {x}, {{"shape", std::vector<int64_t>{i % 2 ? 2 : 6, -1}}});
      Node* a = *graph->AddFunction("a", "quantize", {v}, Scale(0.5));
      Node* b = *graph->AddFunction("b", "quantize", {v}, Scale(0.5));
      Node* da = *graph->AddFunction("da", "dequantize", {a});
      Node* db = *graph->AddFunction("db", "dequantize", {b});
      x = *graph->AddFunction("sum", "add", {da, db});
    }
    EXPECT_OK(graph->AddOutput({x}));
    return graph;
  };
  passes::Remarks remarks;
  const std::unique_ptr<ir::Graph> graph = build(16'667);
  EXPECT_GE(graph->num_nodes(), 100'000);
  EXPECT_LT(CpuSeconds(*graph, remarks), kCpuSeconds);
  EXPECT_OK(graph->Verify());
  EXPECT_EQ(graph->num_nodes(), 2 + 16'667 * 5);  // One quantize less in each block.
}

// One value with very many equal quantizes, and views of it.
TEST(QuantLiftTest, CostIsLinearInTheReadersOfOneValue) {
  ir::Graph graph("wide", Ops());
  Node* x = *graph.AddPlaceholder("x", TensorType{DType::kF32, {2, 6}, std::nullopt, Layout::kRowMajor});
  std::vector<Node*> results;
  for (int i = 0; i < 25'000; ++i) {
    Node* a = *graph.AddFunction("a", "quantize", {x}, Scale(0.5));
    Node* v = *graph.AddFunction("v", "reshape", {x}, {{"shape", std::vector<int64_t>{12}}});
    Node* b = *graph.AddFunction("b", "quantize", {v}, Scale(0.5));
    results.push_back(a);
    results.push_back(b);
  }
  ASSERT_OK(graph.AddOutput(results));
  passes::Remarks remarks;
  EXPECT_LT(CpuSeconds(graph, remarks), kCpuSeconds);
  EXPECT_OK(graph.Verify());
  EXPECT_EQ(graph.num_nodes(), 2 + 1 + 25'000);  // x, output, one quantize, the views.
  EXPECT_EQ(graph.first()->next()->sources().size(), 50'000);
}

TEST(QuantLiftTest, SourcesOfWhatWasCombinedAreKept) {
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<ir::Graph> graph, ir::Parse(R"(graph @g {
  %x: f32[2,6] = placeholder
  %v: f32[12] = call_function reshape(%x, shape=[12])
  %a: u8[12]<scale=0.5> = call_function quantize(%v, scales=[0.5])
  %b: u8[12]<scale=0.5> = call_function quantize(%v, scales=[0.5])
  %c: u8[2,6]<scale=0.5> = call_function quantize(%x, scales=[0.5])
  output(%a, %b, %c)
}
)",
                                                                   Ops()));
  passes::Remarks remarks;
  ASSERT_OK_AND_ASSIGN(const bool changed, QuantLift().Run(*graph, remarks));
  EXPECT_TRUE(changed);
  const Node* kept = graph->FindNodeOrNull("v")->operand(0);
  EXPECT_THAT(kept->sources(), ::testing::UnorderedElementsAre("a", "b", "c"));
}

}  // namespace
}  // namespace fuselage::quant_lift
