#include "ir/ops/int8/elementwise/elementwise.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::int8::elementwise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor Quantized(Tensor codes, QuantParams params) {
  codes.set_type({codes.dtype(), codes.shape(), std::move(params), Layout::kRowMajor});
  return codes;
}
Tensor AllCodes(QuantParams params) {
  Tensor codes(DType::kU8, {256});
  for (int i = 0; i < 256; ++i) codes.data<uint8_t>()[i] = static_cast<uint8_t>(i);
  return Quantized(std::move(codes), std::move(params));
}
AttributeMap Out(DType dtype, double scale, int64_t zero_point, AttributeMap more = {}) {
  more.emplace("out_dtype", dtype);
  more.emplace("out_scale", scale);
  more.emplace("out_zero_point", zero_point);
  return more;
}

class Int8ElementwiseTest : public ::testing::Test {
 protected:
  const OpTester ops_{Register};
};

TEST_F(Int8ElementwiseTest, AddOfAllPairs) {
  const float s_a = 0.043f, s_b = 0.071f, s_y = 0.093f;
  const Tensor row = AllCodes(PerTensor(s_a, 3));
  Tensor column = AllCodes(PerTensor(s_b, 200));
  column.set_type({DType::kU8, {256, 1}, PerTensor(s_b, 200), Layout::kRowMajor});
  const Tensor y = ops_.Run("int8.add", {row, column}, Out(DType::kU8, s_y, 30));
  ASSERT_EQ(y.shape(), (Shape{256, 256}));
  for (int b = 0; b < 256; ++b) {
    for (int a = 0; a < 256; ++a) {
      const float v = std::fma(static_cast<float>(b - 200), s_b / s_y, static_cast<float>(a - 3) * (s_a / s_y));
      const double code = std::min(255.0, std::max(0.0, std::nearbyint(v) + 30.0));
      ASSERT_EQ(y.At(b * 256 + a), code) << a << " + " << b;
    }
  }
}

TEST_F(Int8ElementwiseTest, AddWithRelu) {
  const Tensor a = Quantized(Tensor::Of<int8_t>({3}, {-10, 1, 100}), PerTensor(1));
  const Tensor b = Quantized(Tensor::Of<int8_t>({3}, {2, 2, 100}), PerTensor(1));
  EXPECT_THAT(ops_.Run("int8.add", {a, b}, Out(DType::kI8, 1, -5)).values<int8_t>(), ElementsAre(-13, -2, 127));
  EXPECT_THAT(ops_.Run("int8.add", {a, b}, Out(DType::kI8, 1, -5, {{"activation", "relu"}})).values<int8_t>(),
              ElementsAre(-5, -2, 127));
}

TEST_F(Int8ElementwiseTest, ReluIsAMaximumAtTheSameScale) {
  const Tensor x = AllCodes(PerTensor(0.1f, 77));
  const Tensor y = ops_.Run("int8.relu", {x}, Out(DType::kU8, 0.1f, 77));
  for (int i = 0; i < 256; ++i) EXPECT_EQ(y.At(i), std::max(i, 77));
}

TEST_F(Int8ElementwiseTest, ReluRequantizes) {
  const Tensor x = Quantized(Tensor::Of<int8_t>({5}, {-10, -1, 1, 3, 127}), PerTensor(1));
  EXPECT_THAT(ops_.Run("int8.relu", {x}, Out(DType::kU8, 2, 0)).values<uint8_t>(), ElementsAre(0, 0, 0, 2, 64));
  EXPECT_THAT(ops_.Run("int8.relu", {x}, Out(DType::kU8, 0.25, 7)).values<uint8_t>(), ElementsAre(7, 7, 11, 19, 255));
}

TEST_F(Int8ElementwiseTest, Errors) {
  const TensorType x{DType::kU8, {2}, PerTensor(0.5f), Layout::kRowMajor};
  const TensorType plain{DType::kU8, {2}, std::nullopt, Layout::kRowMajor};
  EXPECT_THAT(ops_.Infer("int8.add", {x, plain}), HasSubstr("other u8[2]: wanted u8 or i8 codes with one scale"));
  EXPECT_THAT(ops_.Infer("int8.add", {x, x}, {{"alpha", 2.0}}), HasSubstr("alpha=2.0: wanted 1 on codes"));
  EXPECT_THAT(ops_.Infer("int8.add", {x, x}, {{"activation", "gelu"}}), HasSubstr("activation=\"gelu\""));
  EXPECT_THAT(ops_.Infer("int8.relu", {x}, {{"out_dtype", DType::kF32}}), HasSubstr("out_dtype=f32: wanted u8 or i8"));
  EXPECT_EQ(ops_.RunAll("int8.relu", {Quantized(Tensor(DType::kU8, {1}), PerTensor(3e38f))}, Out(DType::kU8, 1e-30, 0))
                .status()
                .code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace fuselage::ops::int8::elementwise
