#include "ir/ops/int8/quantize/quantize.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::int8::quantize {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Int8QuantizeTest : public ::testing::Test {
 protected:
  const OpTester ops_{Register};
};

TEST_F(Int8QuantizeTest, Quantize) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor x = Tensor::Of<float>({7}, {0.5, 1.5, -2.5, 1e30f, -infinity, infinity, std::nanf("")});
  EXPECT_THAT(ops_.Run("int8.quantize", {x}, {{"out_zero_point", 10}}).values<uint8_t>(),
              ElementsAre(10, 12, 8, 255, 0, 255, 10));
  EXPECT_THAT(ops_.Run("int8.quantize", {x}, {{"out_dtype", DType::kI8}, {"out_scale", 0.5}}).values<int8_t>(),
              ElementsAre(1, 3, -5, 127, -128, 127, 0));
  // True division: by the rounded reciprocal this would be 29.
  EXPECT_EQ(ops_.Run("int8.quantize", {Tensor::Scalar(0.295f)}, {{"out_scale", 0.01f}}).At(0), 30);
}

TEST_F(Int8QuantizeTest, Dequantize) {
  Tensor q = Tensor::Of<int8_t>({3}, {-128, 5, 127});
  q.set_type({DType::kI8, {3}, PerTensor(0.1f, 5), Layout::kRowMajor});
  EXPECT_THAT(ops_.Run("int8.dequantize", {q}).values<float>(), ElementsAre(-133 * 0.1f, 0, 122 * 0.1f));
}

TEST_F(Int8QuantizeTest, Errors) {
  const TensorType f64{DType::kF64, {2}, std::nullopt, Layout::kRowMajor};
  EXPECT_THAT(ops_.Infer("int8.quantize", {f64}), HasSubstr("input f64[2]: wanted element type f32"));
  EXPECT_THAT(ops_.Infer("int8.dequantize", {f64}), HasSubstr("wanted u8 or i8 codes with one scale"));
  EXPECT_THAT(ops_.Infer("int8.quantize", {Iota({2}).type()}, {{"out_scale", -1.0}}), HasSubstr("out_scale=-1.0"));
}

}  // namespace
}  // namespace fuselage::ops::int8::quantize
