// Skipped where there is no CUDA device, or no cuDNN; the rest is what a machine without one says.
#include "tools/peers/cudnn/network.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/text.h"
#include "third_party/cuda/testing/no_gpu.h"

namespace fuselage::peers::cudnn {
namespace {

using ::fuselage::testing::StatusIs;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr char kGraph[] = R"(graph @g {
  param @first.weight: i8[64,64,3,3]<scale=0.01> = seed(1)
  param @second.weight: i8[64,64,3,3]<scale=0.01> = seed(2)
  module @first = int8.conv2d(activation="relu", out_scale=0.1, padding=[1, 1, 1, 1], weight=@first.weight)
  module @second = int8.conv2d(activation="relu", out_scale=0.1, padding=[1, 1, 1, 1], weight=@second.weight)
  %x: u8[2,64,28,28]<scale=0.1> = placeholder
  %a: u8[2,64,28,28]<scale=0.1> = call_module @first(%x)
  %b: u8[2,64,28,28]<scale=0.1> = call_module @second(%a, %x)
  output(%b)
})";

// The element `at` of [n, h, w, c] by the formula of convolution.h; strides and dilations are 1.
double Wanted(const LoweredConvolution& lowered, const Tensor& input, const Tensor& residual, int64_t at) {
  const Convolution& c = lowered.convolution;
  const int64_t channels = c.input[1], height = c.input[2], width = c.input[3], kernel = c.weight[3];
  const int64_t oc = at % c.output[1], x = at / c.output[1] % c.output[3],
                y = at / c.output[1] / c.output[3] % c.output[2];
  const int64_t n = at / c.output[1] / c.output[3] / c.output[2];
  double sum = 0;
  for (int64_t i = 0; i < c.weight[2] * kernel * channels; ++i) {
    const int64_t channel = i % channels, row = y - c.padding[0] + i / channels / kernel;
    const int64_t column = x - c.padding[1] + i / channels % kernel;
    if (row < 0 || row >= height || column < 0 || column >= width) continue;
    sum += lowered.weight.At(oc * c.weight[2] * kernel * channels + i) *
           input.At(((n * height + row) * width + column) * channels + channel);
  }
  sum = sum * lowered.scale.At(oc) + lowered.bias.At(oc) + (c.residual ? residual.At(at) : 0);
  return std::clamp(c.relu ? std::max(sum, 0.0) : sum, -128.0, 127.0);
}

// One test: a process that has used CUDA cannot try candidates any more.
TEST(Network, RunsOrSaysWhatIsMissing) {
  ir::OpRegistry ops;
  ops::RegisterAll(ops);
  ASSERT_OK_AND_ASSIGN(const auto graph, ir::Parse(kGraph, ops));
  std::vector<std::string> accidents;
  const auto network = MakeNetwork(*graph, DType::kI8, [&](const std::string& line) { accidents.push_back(line); });
  EXPECT_THAT(accidents, ::testing::IsEmpty());
  if (!network.ok()) {
    EXPECT_THAT(std::string(network.status().message()), AnyOf(HasSubstr("no CUDA device: "), HasSubstr("cuDNN")));
    FUSELAGE_NO_GPU(network.status());
  }
  EXPECT_THAT((*network)->isa(), ::testing::StartsWith("sm_"));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE((*network)->Run().ok());
    EXPECT_GT((*network)->device_ns(), 0);
  }
  ASSERT_OK_AND_ASSIGN(const auto lowered, LoweredConvolutions(*graph, DType::kI8));
  for (const LoweredConvolution& one : lowered) {
    ASSERT_OK_AND_ASSIGN(const Tensor input, (*network)->Value(one.node->operand(0)->name()));
    ASSERT_OK_AND_ASSIGN(const Tensor residual, (*network)->Value("x"));
    ASSERT_OK_AND_ASSIGN(const Tensor found, (*network)->Value(one.node->name()));
    for (const int64_t at : {0, 63, 64 * 28 * 5 + 17, 2 * 28 * 28 * 64 - 1}) {
      EXPECT_NEAR(found.At(at), Wanted(one, input, residual, at), 1) << one.node->name() << " at " << at;
    }
  }
}

}  // namespace
}  // namespace fuselage::peers::cudnn
