#include "passes/core/roofline.h"

#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/text.h"

namespace fuselage::passes {
namespace {

class RooflineTest : public ::testing::Test {
 protected:
  void SetUp() override { ops::RegisterAll(ops_); }
  std::unique_ptr<ir::Graph> Parse(absl::string_view text) {
    auto graph = ir::Parse(text, ops_);
    EXPECT_TRUE(graph.ok()) << graph.status();
    return std::move(*graph);
  }
  Work Of(const ir::Graph& graph, absl::string_view name) { return WorkOf(*graph.FindNodeOrNull(name)); }

  ir::OpRegistry ops_;
};

constexpr char kGraph[] = R"text(graph @g {
  param @b: f32[5] = [1, 2, 3, 4, 5]
  param @c: f32[6,2,3,3] = seed(1)
  param @w: f32[5,24] = seed(2)
  module @conv = conv2d(groups=2, padding=[1, 1, 1, 1], weight=@c)
  module @fc = linear(bias=@b, weight=@w)
  module @flat = flatten()
  module @relu = relu()
  %x: f32[1,4,2,2] = placeholder
  %conv: f32[1,6,2,2] = call_module @conv(%x)
  %relu: f32[1,6,2,2] = call_module @relu(%conv)
  %flat: f32[1,24] = call_module @flat(%relu)
  %fc: f32[1,5] = call_module @fc(%flat)
  %fused: f32[1,5] = call_function fused_elementwise(%fc, steps=["sigmoid(0)", "mul(0, 1)"])
  output(%fused)
})text";

TEST_F(RooflineTest, CountsOperationsAndBytes) {
  const auto graph = Parse(kGraph);
  const Work conv = Of(*graph, "conv");
  EXPECT_EQ(conv.operations, 2 * 24 * (2 * 3 * 3));
  EXPECT_EQ(conv.bytes, 4 * (16 + 24 + 6 * 2 * 3 * 3));
  EXPECT_EQ(conv.calls, 1);
  EXPECT_EQ(Of(*graph, "relu").operations, 24);
  EXPECT_EQ(Of(*graph, "relu").bytes, 4 * 48);
  EXPECT_EQ(Of(*graph, "flat").calls, 0);
  EXPECT_EQ(Of(*graph, "flat").bytes, 0);
  EXPECT_EQ(Of(*graph, "fc").operations, 2 * 5 * 24);
  EXPECT_EQ(Of(*graph, "fc").bytes, 4 * (24 + 5 + 5 + 5 * 24));
  EXPECT_EQ(Of(*graph, "fused").operations, 5 * 21);
  EXPECT_EQ(Of(*graph, "fused").bytes, 4 * 10);
  EXPECT_DOUBLE_EQ(ArithmeticIntensity(Of(*graph, "relu")), 0.125);
  EXPECT_EQ(WorkOf(*graph->first()).bytes, 0);
}

TEST_F(RooflineTest, TheLongerRoofDecides) {
  const MachinePeaks peaks = {10, 40, 5, 100};
  EXPECT_DOUBLE_EQ(PredictedSeconds(Work{30, 5, 1, false}, peaks), 100 + 3);
  EXPECT_DOUBLE_EQ(PredictedSeconds(Work{30, 50, 1, false}, peaks), 100 + 10);
  EXPECT_DOUBLE_EQ(PredictedSeconds(Work{80, 5, 1, true}, peaks), 100 + 2);
  const auto graph = Parse(kGraph);
  double sum = 0;
  for (const char* name : {"conv", "relu", "fc", "fused"}) sum += PredictedSeconds(Of(*graph, name), peaks);
  EXPECT_DOUBLE_EQ(PredictedSeconds(*graph, peaks), sum);
}

}  // namespace
}  // namespace fuselage::passes
