#include "ir/ops/int8/linear/linear.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::int8::linear {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor Quantized(Tensor codes, QuantParams params) {
  codes.set_type({codes.dtype(), codes.shape(), std::move(params), Layout::kRowMajor});
  return codes;
}

class Int8LinearTest : public ::testing::Test {
 protected:
  const OpTester ops_{Register};
  const Tensor x_ = Quantized(Tensor::Of<uint8_t>({2, 2}, {10, 20, 0, 255}), PerTensor(0.5f, 10));
  const Tensor w_ = Quantized(Tensor::Of<int8_t>({2, 2}, {1, -2, 127, -128}), PerAxis(0, {0.25f, 0.5f}));
  const Tensor b_ = Tensor::Of<float>({2}, {1, -0.5});
};

// Sums of (x - 10) * w: [-20, -1280; -500, -32630].
TEST_F(Int8LinearTest, FloatOutputOfTheLogits) {
  EXPECT_THAT(ops_.Run("int8.linear", {x_, w_, b_}, {{"out_dtype", DType::kF32}}).values<float>(),
              ElementsAre(-20 * 0.125 + 1, -1280 * 0.25 - 0.5, -500 * 0.125 + 1, -32630 * 0.25 - 0.5));
}

// Features are the last dimension, whatever stands in front.
TEST_F(Int8LinearTest, RankFour) {
  const Tensor x = Quantized(Tensor::Of<uint8_t>({1, 2, 1, 2}, {10, 20, 0, 255}), PerTensor(0.5f, 10));
  const Tensor y = ops_.Run("int8.linear", {x, w_, b_}, {{"out_dtype", DType::kF32}});
  EXPECT_EQ(y.shape(), (Shape{1, 2, 1, 2}));
  EXPECT_THAT(y.values<float>(),
              ElementsAre(-20 * 0.125 + 1, -1280 * 0.25 - 0.5, -500 * 0.125 + 1, -32630 * 0.25 - 0.5));
}

TEST_F(Int8LinearTest, Codes) {
  const AttributeMap attributes = {{"out_dtype", DType::kI8}, {"out_scale", 0.5}, {"out_zero_point", 100}};
  // Bias in steps: 8 and -2; multipliers 0.25 and 0.5; -3 -> 97; -641; -123 -> -23; saturated.
  EXPECT_THAT(ops_.Run("int8.linear", {x_, w_, b_}, attributes).values<int8_t>(), ElementsAre(97, -128, -23, -128));
  AttributeMap relu = attributes;
  relu.emplace("activation", "relu");
  EXPECT_THAT(ops_.Run("int8.linear", {x_, w_, b_}, relu).values<int8_t>(), ElementsAre(100, 100, 100, 100));
}

// Rows in steps of 0.5 and 2. Sums of x * w: [-30, -1290; -254, -16256].
TEST_F(Int8LinearTest, ScalesOfRows) {
  const Tensor x = Tensor::Of<int8_t>({2, 2}, {10, 20, 0, 127});
  const Tensor w = Quantized(Tensor::Of<int8_t>({2, 2}, {1, -2, 127, -128}), PerAxis(0, {0.25f, 0.5f}));
  const Tensor scale = Tensor::Of<float>({2, 1}, {0.5f, 2});
  const AttributeMap attributes = {{"out_dtype", DType::kF32}};
  EXPECT_THAT(ops_.Run("int8.linear", {x, w, b_, scale}, attributes).values<float>(),
              ElementsAre(-30 * 0.125 + 1, -1290 * 0.25 - 0.5, -254 * 0.5 + 1, -16256 - 0.5));
}

TEST_F(Int8LinearTest, RoundsHalfToEven) {
  const Tensor x = Quantized(Tensor::Of<int8_t>({4, 1}, {1, 3, -1, -3}), PerTensor(1));
  const Tensor w = Quantized(Tensor::Of<int8_t>({1, 1}, {1}), PerTensor(1));
  EXPECT_THAT(ops_.Run("int8.linear", {x, w}, {{"out_dtype", DType::kI8}, {"out_scale", 2.0}}).values<int8_t>(),
              ElementsAre(0, 2, 0, -2));
}

TEST_F(Int8LinearTest, Errors) {
  const TensorType short_input{DType::kU8, {2, 3}, PerTensor(0.5f), Layout::kRowMajor};
  EXPECT_THAT(ops_.Infer("int8.linear", {short_input, w_.type()}), HasSubstr("3 features, wanted 2"));
  EXPECT_THAT(ops_.Infer("int8.linear", {b_.type(), w_.type()}), HasSubstr("wanted u8 or i8 codes with one scale"));
  EXPECT_EQ(ops_.Infer("int8.linear", {x_.type(), w_.type()}), "u8[2,2]<scale=1>");
  const TensorType codes{DType::kI8, {2, 2}, std::nullopt, Layout::kRowMajor};
  const auto scales = [](Shape shape) { return TensorType{DType::kF32, std::move(shape), std::nullopt, {}}; };
  const AttributeMap f32 = {{"out_dtype", DType::kF32}};
  EXPECT_THAT(ops_.Infer("int8.linear", {codes, w_.type(), b_.type(), scales({2})}, f32), HasSubstr("wanted shape [2,1]"));
  EXPECT_THAT(ops_.Infer("int8.linear", {x_.type(), w_.type(), b_.type(), scales({2, 1})}, f32),
              HasSubstr("wanted i8 without parameters, beside scales"));
  EXPECT_THAT(ops_.Infer("int8.linear", {codes, w_.type(), b_.type(), scales({2, 1})}),
              HasSubstr("wanted f32, beside scales"));
  EXPECT_EQ(ops_.Infer("int8.linear", {codes, w_.type(), b_.type(), scales({2, 1})}, f32), "f32[2,2]");
}

}  // namespace
}  // namespace fuselage::ops::int8::linear
