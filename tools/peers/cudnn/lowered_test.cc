#include "tools/peers/cudnn/lowered.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/text.h"

namespace fuselage::peers::cudnn {
namespace {

using ::fuselage::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// Three channels into four, and a grouped convolution with a residual.
constexpr char kGraph[] = R"(graph @g {
  param @stem.bias: f32[4] = [0.5, -1, 0, 0.25]
  param @stem.weight: i8[4,3,1,2]<axis=0, scale=[0.5, 0.25, 0.5, 0.25]> = seed(1)
  param @next.weight: i8[4,2,3,3]<scale=0.125> = seed(2)
  module @stem = int8.conv2d(activation="relu", out_scale=0.125, padding=[1, 0, 0, 1], stride=[2, 1], bias=@stem.bias, weight=@stem.weight)
  module @next = int8.conv2d(groups=2, out_scale=0.25, padding=[1, 1, 1, 1], weight=@next.weight)
  %x: u8[1,3,7,8]<scale=0.5, zp=3> = placeholder
  %a: u8[1,4,4,8]<scale=0.125> = call_module @stem(%x)
  %b: u8[1,4,4,8]<scale=0.25> = call_module @next(%a, %a)
  output(%b)
})";

std::unique_ptr<ir::Graph> GraphOf(std::string text) {
  static const ir::OpRegistry* const ops = [] {
    auto* made = new ir::OpRegistry;
    ops::RegisterAll(*made);
    return made;
  }();
  auto graph = ir::Parse(text, *ops);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

TEST(Lowered, ShapesAndAttributes) {
  const auto graph = GraphOf(kGraph);
  for (const DType dtype : {DType::kI8, DType::kF16}) {
    ASSERT_OK_AND_ASSIGN(const auto all, LoweredConvolutions(*graph, dtype));
    ASSERT_THAT(all, SizeIs(2));
    const int64_t channels = dtype == DType::kI8 ? 4 : 8;
    const Convolution &stem = all[0].convolution, &next = all[1].convolution;
    EXPECT_THAT(stem.input, ElementsAre(1, channels, 7, 8)) << "filled up";
    EXPECT_THAT(stem.weight, ElementsAre(4, channels, 1, 2));
    EXPECT_THAT(stem.output, ElementsAre(1, 4, 4, 8));
    EXPECT_THAT(stem.stride, ElementsAre(2, 1));
    EXPECT_THAT(stem.padding, ElementsAre(1, 0, 0, 1));
    EXPECT_TRUE(stem.relu && !stem.residual && stem.dtype == dtype);
    EXPECT_THAT(next.input, ElementsAre(1, 4, 4, 8)) << "groups stay as they are";
    EXPECT_THAT(next.weight, ElementsAre(4, 2, 3, 3));
    EXPECT_TRUE(!next.relu && next.residual);
    EXPECT_TRUE(stem < next || next < stem);
    EXPECT_FALSE(stem < stem);
  }
}

TEST(Lowered, ParametersMeanTheLayer) {
  const auto graph = GraphOf(kGraph);
  const ir::Node* const node = graph->FindNodeOrNull("a");
  const Tensor& weight = *graph->ParameterOfOrNull(*node, "weight");
  ASSERT_OK_AND_ASSIGN(const auto int8, LoweredConvolutions(*graph, DType::kI8));
  ASSERT_OK_AND_ASSIGN(const auto fp16, LoweredConvolutions(*graph, DType::kF16));
  const float weight_scales[] = {0.5, 0.25, 0.5, 0.25}, bias[] = {0.5, -1, 0, 0.25};
  for (int64_t o = 0; o < 4; ++o) {
    // s_x*s_w/s_y, and the bias in steps of s_y.
    EXPECT_EQ(int8[0].scale.At(o), 0.5 * weight_scales[o] / 0.125);
    EXPECT_EQ(int8[0].bias.At(o), bias[o] / 0.125);
    EXPECT_EQ(fp16[0].bias.At(o), bias[o]);
    for (int64_t x = 0; x < 2; ++x) {
      for (int64_t c = 0; c < 8; ++c) {
        const double code = c < 3 ? weight.At((o * 3 + c) * 2 + x) : 0;
        EXPECT_EQ(fp16[0].weight.At((o * 2 + x) * 8 + c), code * weight_scales[o]);
        if (c < 4) EXPECT_EQ(int8[0].weight.At((o * 2 + x) * 4 + c), code);
      }
    }
  }
  EXPECT_THAT(fp16[0].scale, ::testing::Property(&Tensor::num_elements, 0));
  EXPECT_EQ(int8[1].bias.At(0), 0) << "there is none";
}

TEST(Lowered, NamesWhatItDoesNotTake) {
  std::string text = kGraph;
  const std::string relu = "\"relu\"";
  text.replace(text.find(relu), relu.size(), "\"clamp(min=0, max=6)\"");
  EXPECT_THAT(LoweredConvolutions(*GraphOf(text), DType::kI8).status(),
              StatusIs(absl::StatusCode::kUnimplemented, AllOf(HasSubstr("%a"), HasSubstr("wanted none or relu"))));
  const auto none = GraphOf("graph @g {\n  %x: f32[1] = placeholder\n  output(%x)\n}");
  EXPECT_THAT(LoweredConvolutions(*none, DType::kI8).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no convolution")));
}

}  // namespace
}  // namespace fuselage::peers::cudnn
