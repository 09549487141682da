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

// An op says what it computes; a quantized form does what its float op does.
TEST_F(RooflineTest, CountsWhatEachOpComputes) {
  const auto graph = Parse(R"text(graph @g {
  param @r: f32[1,16,4] = seed(1)
  param @t: f32[3,5,2,2] = seed(2)
  param @u: f32[1,16,6] = seed(3)
  param @w: i8[8,3,3,3]<scale=0.01> = seed(4)
  param @v: i8[10,3]<scale=0.01> = seed(5)
  module @head = int8.global_avg_pool_linear(weight=@v)
  module @lstm = lstm(recurrent_weight=@r, weight=@u)
  module @stem = int8.conv2d_max_pool2d(padding=[1, 1, 1, 1], pool_kernel_size=[2, 2], pool_stride=[2, 2], weight=@w)
  module @up = conv_transpose2d(stride=[2, 2], weight=@t)
  %x: f32[1,3,4,4] = placeholder
  %s: f32[5,2,6] = placeholder
  %q: u8[1,3,4,4]<scale=0.1, zp=3> = placeholder
  %up: f32[1,5,8,8] = call_module @up(%x)
  %mean: f32[1,3] = call_function mean(%x, dims=[2, 3])
  %pool: f32[1,3,2,2] = call_function max_pool2d(%x, kernel_size=[2, 2], stride=[2, 2])
  %lstm: (f32[5,1,2,4], f32[1,2,4], f32[1,2,4]) = call_module @lstm(%s)
  %states: f32[5,1,2,4] = call_function getitem(%lstm, index=0)
  %gelu: u8[1,3,4,4]<scale=1> = call_function int8.gelu(%q)
  %chain: u8[1,3,4,4]<scale=1> = call_function int8.fused_elementwise(%q, steps=["tanh(0)", "mul(0, 1)"])
  %average: u8[1,3,1,1]<scale=1> = call_function int8.global_avg_pool(%q)
  %stem: u8[1,8,2,2]<scale=1> = call_module @stem(%q)
  %head: u8[1,10]<scale=1> = call_module @head(%q)
  output(%up, %mean, %pool, %states, %gelu, %chain, %average, %stem, %head)
})text");
  ASSERT_NE(graph, nullptr);
  const auto cost = [&](absl::string_view name) { return graph->CostOf(*graph->FindNodeOrNull(name)); };
  EXPECT_EQ(cost("up").macs, 48 * (5 * 2 * 2));
  EXPECT_EQ(Of(*graph, "up").operations, 2 * 48 * (5 * 2 * 2));
  EXPECT_EQ(Of(*graph, "mean").operations, 48);
  EXPECT_EQ(Of(*graph, "pool").operations, 12 * 4);
  EXPECT_EQ(cost("pool").macs, 0);
  EXPECT_EQ(cost("lstm").macs, 5 * 2 * 16 * (6 + 4));
  EXPECT_EQ(Of(*graph, "states").calls, 0);
  EXPECT_EQ(Of(*graph, "gelu").operations, 48 * 20);
  EXPECT_EQ(Of(*graph, "chain").operations, 48 * 21);
  EXPECT_TRUE(Of(*graph, "chain").on_codes);
  EXPECT_EQ(Of(*graph, "average").operations, 48);
  EXPECT_EQ(cost("stem").macs, 8 * 16 * 27) << "of all pixels, before the pool takes some";
  EXPECT_EQ(Of(*graph, "stem").operations, 2 * 8 * 16 * 27 + 8 * 4 * 4);
  EXPECT_EQ(cost("head").macs, 30);
  EXPECT_EQ(Of(*graph, "head").operations, 2 * 30 + 48);
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
