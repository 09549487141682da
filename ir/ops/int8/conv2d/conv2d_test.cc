#include "ir/ops/int8/conv2d/conv2d.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::int8::conv2d {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ints = std::vector<int64_t>;

Tensor Quantized(Tensor codes, QuantParams params) {
  codes.set_type({codes.dtype(), codes.shape(), std::move(params), Layout::kRowMajor});
  return codes;
}
TensorType Codes(DType dtype, Shape shape, QuantParams params) {
  return {dtype, std::move(shape), std::move(params), Layout::kRowMajor};
}
AttributeMap Out(DType dtype, double scale, int64_t zero_point, AttributeMap more = {}) {
  more.emplace("out_dtype", dtype);
  more.emplace("out_scale", scale);
  more.emplace("out_zero_point", zero_point);
  return more;
}

class Int8Conv2dTest : public ::testing::Test {
 protected:
  const OpTester ops_{Register};
};

// The formulas of docs/arithmetic.md from top to bottom, one output at a time, in integers.
struct Case {
  DType input_dtype;
  int32_t input_zero_point;
  Shape input, weight;
  Ints stride, padding, dilation;
  int64_t groups;
  bool bias, residual, relu;
  DType out_dtype;
  int32_t out_zero_point;
};

class Int8Conv2dCaseTest : public Int8Conv2dTest, public ::testing::WithParamInterface<Case> {};

TEST_P(Int8Conv2dCaseTest, FollowsTheArithmetic) {
  const Case& c = GetParam();
  const float s_x = 0.037f, s_y = 0.31f, s_r = 0.11f;
  const int64_t oc = c.weight[0];
  std::vector<float> s_w;
  for (int64_t i = 0; i < oc; ++i) s_w.push_back(0.011f + 0.003f * static_cast<float>(i));
  const Tensor x = SeededTensor(Codes(c.input_dtype, c.input, PerTensor(s_x, c.input_zero_point)), 1);
  const Tensor w = SeededTensor(Codes(DType::kI8, c.weight, PerAxis(0, s_w)), 2);
  const Tensor b = SeededTensor(TensorType{DType::kF32, {oc}, std::nullopt, Layout::kRowMajor}, 3);
  const AttributeMap attributes = Out(c.out_dtype, s_y, c.out_zero_point,
                                      {{"stride", c.stride},
                                       {"padding", c.padding},
                                       {"dilation", c.dilation},
                                       {"groups", c.groups},
                                       {"activation", c.relu ? "relu" : "none"}});
  OpTester::Operands operands = {x, w, std::nullopt, std::nullopt};
  if (c.bias) operands[2] = b;
  const Shape shape = ops_.Run("int8.conv2d", operands, attributes).shape();
  const Tensor r = SeededTensor(Codes(DType::kI8, shape, PerTensor(s_r, -5)), 4);
  if (c.residual) operands[3] = r;
  const Tensor y = ops_.Run("int8.conv2d", operands, attributes);
  EXPECT_EQ(ToString(y.type()), ToString(Codes(c.out_dtype, shape, PerTensor(s_y, c.out_zero_point))));

  int64_t i = 0;
  for (int64_t n = 0; n < shape[0]; ++n) {
    for (int64_t o = 0; o < oc; ++o) {
      int32_t sum_w = 0;
      const int64_t inner = w.num_elements() / oc;
      for (int64_t k = 0; k < inner; ++k) sum_w += w.data<int8_t>()[o * inner + k];
      const float step = s_x * s_w[o];
      const int32_t bias = c.bias ? static_cast<int32_t>(std::nearbyint(b.data<float>()[o] / step)) : 0;
      const int32_t b32 = bias - c.input_zero_point * sum_w;
      for (int64_t h = 0; h < shape[2]; ++h) {
        for (int64_t v = 0; v < shape[3]; ++v, ++i) {
          int32_t acc = 0;
          for (int64_t k = 0; k < inner; ++k) {
            const int64_t ic = k / (c.weight[2] * c.weight[3]) + o / (oc / c.groups) * c.weight[1];
            const int64_t p = h * c.stride[0] - c.padding[0] + k / c.weight[3] % c.weight[2] * c.dilation[0];
            const int64_t q = v * c.stride[1] - c.padding[1] + k % c.weight[3] * c.dilation[1];
            const bool inside = p >= 0 && p < c.input[2] && q >= 0 && q < c.input[3];
            const int64_t at = ((n * c.input[1] + ic) * c.input[2] + p) * c.input[3] + q;
            const int32_t code = inside ? static_cast<int32_t>(x.At(at)) : c.input_zero_point;
            acc += code * w.data<int8_t>()[o * inner + k];
          }
          float value = static_cast<float>(acc + b32) * (step / s_y);
          if (c.residual) value = std::fma(static_cast<float>(r.data<int8_t>()[i] + 5), s_r / s_y, value);
          double code = std::nearbyint(value) + c.out_zero_point;
          if (c.relu) code = std::max<double>(code, c.out_zero_point);
          const IntegerRange range = RangeOf(c.out_dtype);
          code = std::min<double>(std::max<double>(code, range.min), range.max);
          ASSERT_EQ(y.At(i), code) << "element " << i;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, Int8Conv2dCaseTest,
                         ::testing::Values(Case{DType::kU8,
                                                0,
                                                {1, 1, 1, 1},
                                                {1, 1, 1, 1},
                                                {1, 1},
                                                {0, 0, 0, 0},
                                                {1, 1},
                                                1,
                                                false,
                                                false,
                                                false,
                                                DType::kU8,
                                                0},
                                           Case{DType::kU8,
                                                128,
                                                {2, 3, 7, 6},
                                                {4, 3, 3, 3},
                                                {1, 1},
                                                {1, 1, 1, 1},
                                                {1, 1},
                                                1,
                                                true,
                                                false,
                                                true,
                                                DType::kU8,
                                                0},
                                           Case{DType::kU8,
                                                255,
                                                {1, 4, 9, 5},
                                                {6, 2, 2, 3},
                                                {2, 1},
                                                {0, 1, 2, 3},
                                                {1, 2},
                                                2,
                                                true,
                                                true,
                                                true,
                                                DType::kU8,
                                                3},
                                           Case{DType::kI8,
                                                -128,
                                                {1, 6, 5, 5},
                                                {6, 1, 3, 3},
                                                {1, 2},
                                                {1, 1, 1, 1},
                                                {1, 1},
                                                6,
                                                true,
                                                true,
                                                false,
                                                DType::kI8,
                                                -7},
                                           Case{DType::kI8,
                                                0,
                                                {1, 16, 8, 8},
                                                {5, 16, 3, 3},
                                                {2, 2},
                                                {1, 1, 1, 1},
                                                {1, 1},
                                                1,
                                                false,
                                                true,
                                                true,
                                                DType::kI8,
                                                127}));

TEST_F(Int8Conv2dTest, FloatOutput) {
  const Tensor x = Quantized(Tensor::Of<uint8_t>({1, 1, 1, 2}, {3, 13}), PerTensor(0.5f, 10));
  const Tensor w = Quantized(Tensor::Of<int8_t>({1, 1, 1, 1}, {-4}), PerTensor(0.25f));
  const Tensor b = Tensor::Of<float>({1}, {0.75});
  EXPECT_THAT(ops_.Run("int8.conv2d", {x, w, b}, {{"out_dtype", DType::kF32}}).values<float>(),
              ElementsAre(28 * 0.125 + 0.75, -12 * 0.125 + 0.75));
  EXPECT_THAT(ops_.Run("int8.conv2d", {x, w, b}, {{"out_dtype", DType::kF32}, {"activation", "relu"}}).values<float>(),
              ElementsAre(4.25, 0));
}

TEST_F(Int8Conv2dTest, AClampIsOneOfCodes) {
  const Tensor x = Quantized(Tensor::Of<uint8_t>({1, 1, 1, 4}, {0, 1, 2, 255}), PerTensor(0.5f));
  const Tensor w = Quantized(Tensor::Of<int8_t>({1, 1, 1, 1}, {4}), PerTensor(0.5f));
  // 0, 1, 2, 255 in the result's steps of 0.25 are 0, 4, 8, 1020.
  EXPECT_THAT(ops_.Run("int8.conv2d", {x, w},
                       {{"out_scale", Attribute(0.25)},
                        {"out_zero_point", Attribute(3)},
                        {"activation", "clamp(min=0.4, max=1.9)"}})
                  .values<uint8_t>(),
              ElementsAre(3 + 2, 3 + 4, 3 + 8, 3 + 8));
}

TEST_F(Int8Conv2dTest, ScalesAndShiftsBehindAFunction) {
  const Tensor x = Quantized(Tensor::Of<uint8_t>({1, 1, 1, 2}, {3, 13}), PerTensor(0.5f, 10));
  const Tensor w = Quantized(Tensor::Of<int8_t>({2, 1, 1, 1}, {4, -4}), PerTensor(0.25f));
  const Tensor scale = Tensor::Of<float>({2}, {2, -1}), shift = Tensor::Of<float>({2}, {0.5, 0.25});
  // The sums are -28 and 12, 28 and -12 eighths.
  const AttributeMap leaky = {{"activation", Attribute("leaky_relu(negative_slope=0.5)")}};
  const OpTester::Operands operands = {x, w, std::nullopt, std::nullopt, scale, shift};
  AttributeMap floats = leaky;
  floats.emplace("out_dtype", DType::kF32);
  EXPECT_THAT(ops_.Run("int8.conv2d", operands, floats).values<float>(), ElementsAre(-3, 3.5, -3.25, 1));
  EXPECT_THAT(ops_.Run("int8.conv2d", operands, Out(DType::kI8, 0.25, -3, leaky)).values<int8_t>(),
              ElementsAre(-12 - 3, 14 - 3, -13 - 3, 4 - 3));

  const auto message = [&](const OpTester::Operands& operands, const AttributeMap& attributes) {
    return std::string(ops_.RunAll("int8.conv2d", operands, attributes).status().message());
  };
  EXPECT_THAT(message({x, w, std::nullopt, std::nullopt, scale}, leaky), HasSubstr("post_shift: absent"));
  EXPECT_THAT(message(operands, {{"activation", "relu"}}), HasSubstr("wanted a function without a clamp"));
  EXPECT_THAT(message({x, w, std::nullopt, std::nullopt, scale, Tensor::Of<float>({1}, {1})}, leaky),
              HasSubstr("post_shift"));
}

TEST_F(Int8Conv2dTest, IntegerBias) {
  const Tensor x = Quantized(Tensor::Of<uint8_t>({1, 1, 1, 1}, {2}), PerTensor(0.5f));
  const Tensor w = Quantized(Tensor::Of<int8_t>({1, 1, 1, 1}, {3}), PerTensor(0.5f));
  const auto run = [&](const Tensor& bias) {
    return ops_.Run("int8.conv2d", {x, w, bias}, Out(DType::kU8, 0.25, 0)).At(0);
  };
  const Tensor steps = Tensor::Of<int32_t>({1}, {7});
  EXPECT_EQ(run(steps), 13);
  EXPECT_EQ(run(Quantized(steps, PerTensor(0.25f))), 13);
  EXPECT_EQ(run(Quantized(steps, PerTensor(0.5f))), 20);
}

TEST_F(Int8Conv2dTest, WhatCannotBeProvenIsDeclined) {
  const Tensor x = Quantized(Tensor::Of<uint8_t>({1, 1, 1, 1}, {2}), PerTensor(0.5f));
  const Tensor w = Quantized(Tensor::Of<int8_t>({1, 1, 1, 1}, {3}), PerTensor(0.5f));
  const auto status = [&](const Tensor& bias, double out_scale) {
    return ops_.RunAll("int8.conv2d", {x, w, bias}, Out(DType::kU8, out_scale, 0)).status();
  };
  const absl::Status large = status(Tensor::Of<float>({1}, {1e9f}), 1);
  EXPECT_EQ(large.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(large.ToString(), HasSubstr("wanted less than 2^31"));
  EXPECT_THAT(status(Tensor::Of<int32_t>({1}, {INT32_MAX}), 1).ToString(), HasSubstr("may overflow 32 bits"));
  EXPECT_THAT(status(Tensor::Of<float>({1}, {std::nanf("")}), 1).ToString(), HasSubstr("FAILED_PRECONDITION"));
  EXPECT_THAT(status(Tensor::Of<float>({1}, {1}), 3e38).ToString(), HasSubstr("wanted a normal float"));
}

TEST_F(Int8Conv2dTest, Errors) {
  const TensorType x = Codes(DType::kU8, {1, 2, 4, 4}, PerTensor(0.5f)),
                   w = Codes(DType::kI8, {3, 2, 1, 1}, PerTensor(1));
  const auto error = [&](OpTester::Types operands, const AttributeMap& attributes = {}) {
    return ops_.Infer("int8.conv2d", operands, attributes);
  };
  const auto plain = [](DType dtype, Shape shape) { return TensorType{dtype, shape, std::nullopt, Layout::kRowMajor}; };
  EXPECT_EQ(error({x, w}, Out(DType::kI8, 0.25, -3)), "i8[1,3,4,4]<scale=0.25, zp=-3>");
  EXPECT_EQ(error({x, w}, {{"out_dtype", DType::kF32}}), "f32[1,3,4,4]");
  EXPECT_THAT(error({plain(DType::kU8, {1, 2, 4, 4}), w}), HasSubstr("wanted u8 or i8 codes with one scale"));
  EXPECT_THAT(error({x, plain(DType::kI8, {3, 2, 1, 1})}), HasSubstr("weight i8[3,2,1,1]: wanted i8 codes"));
  EXPECT_THAT(error({x, Codes(DType::kI8, {3, 2, 1, 1}, PerTensor(1, 4))}), HasSubstr("zero point 4, wanted 0"));
  EXPECT_THAT(error({x, Codes(DType::kI8, {3, 2, 1, 1}, PerAxis(1, {1, 1}))}), HasSubstr("each index of axis 0"));
  EXPECT_THAT(error({x, w, plain(DType::kF16, {3})}), HasSubstr("bias f16[3]: wanted f32 or i32"));
  EXPECT_THAT(error({x, w, std::nullopt, Codes(DType::kU8, {1, 3, 4, 4}, PerTensor(1))}, {{"out_dtype", DType::kF32}}),
              HasSubstr("u8 or i8 with a residual"));
  EXPECT_THAT(error({x, w}, Out(DType::kI32, 1, 0)), HasSubstr("out_dtype=i32: wanted u8, i8 or f32"));
  EXPECT_THAT(error({x, w}, Out(DType::kU8, 0, 0)), HasSubstr("out_scale=0.0: wanted a normal float > 0"));
  EXPECT_THAT(error({x, w}, Out(DType::kU8, 1, 256)), HasSubstr("out_zero_point=256: wanted a value in [0, 255]"));
}

}  // namespace
}  // namespace fuselage::ops::int8::conv2d
