#include "ir/ops/quantize/quantize.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::quantize {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ints = std::vector<int64_t>;
using Floats = std::vector<double>;

TensorType F32(Shape shape) { return {DType::kF32, std::move(shape), std::nullopt, Layout::kRowMajor}; }

class QuantizeTest : public ::testing::Test {
 protected:
  const OpTester ops_{Register};
};

TEST_F(QuantizeTest, RoundsHalfToEvenThenSaturates) {
  const Tensor x = Tensor::Of<float>({8}, {0.5, 1.5, 2.5, -0.5, -1.5, 1e30f, -1e30f, std::nanf("")});
  EXPECT_THAT(ops_.Run("quantize", {x}, {{"scales", Floats{1}}, {"zero_points", Ints{10}}}).values<uint8_t>(),
              ElementsAre(10, 12, 12, 10, 8, 255, 0, 10));
  EXPECT_THAT(ops_.Run("quantize", {x}, {{"scales", Floats{1}}, {"dtype", DType::kI8}}).values<int8_t>(),
              ElementsAre(0, 2, 2, 0, -2, 127, -128, 0));
}

TEST_F(QuantizeTest, TrueDivisionInFloat) {
  // By the rounded reciprocal, or in double, these would be 1 and 29.
  EXPECT_EQ(ops_.Run("quantize", {Tensor::Scalar(0.105f)}, {{"scales", Floats{0.07f}}}).At(0), 2);
  EXPECT_EQ(ops_.Run("quantize", {Tensor::Scalar(0.295f)}, {{"scales", Floats{0.01f}}}).At(0), 30);
}

TEST_F(QuantizeTest, ParametersGoIntoTheType) {
  EXPECT_EQ(ops_.Infer("quantize", {F32({2, 3})}, {{"scales", Floats{0.5}}, {"zero_points", Ints{3}}}),
            "u8[2,3]<scale=0.5, zp=3>");
  EXPECT_EQ(ops_.Infer("quantize", {F32({2, 3})}, {{"scales", Floats{0.5, 0.25}}, {"axis", 0}, {"dtype", DType::kI8}}),
            "i8[2,3]<axis=0, scale=[0.5, 0.25]>");
  EXPECT_EQ(ops_.Infer("quantize", {F32({2}), F32({})}), "u8[2]");
}

TEST_F(QuantizeTest, PerAxis) {
  const Tensor x = Tensor::Of<float>({2, 2}, {1, 2, 1, 2});
  const Tensor q = ops_.Run("quantize", {x}, {{"scales", Floats{0.5, 0.25}}, {"zero_points", Ints{0, 1}}, {"axis", 1}});
  EXPECT_THAT(q.values<uint8_t>(), ElementsAre(2, 9, 2, 9));
  EXPECT_THAT(ops_.Run("dequantize", {q}).values<float>(), ElementsAre(1, 2, 1, 2));
}

TEST_F(QuantizeTest, ParametersFromOperands) {
  const Tensor x = Tensor::Of<float>({3}, {-1, 0, 1}), s = Tensor::Scalar(0.5f);
  const Tensor z = Tensor::Scalar<int8_t>(-3);
  const Tensor q = ops_.Run("quantize", {x, s, z}, {{"dtype", DType::kI8}});
  EXPECT_THAT(q.values<int8_t>(), ElementsAre(-5, -3, -1));
  EXPECT_FALSE(q.type().quant.has_value());
  EXPECT_THAT(ops_.Run("dequantize", {q, s, z}).values<float>(), ElementsAre(-1, 0, 1));
  EXPECT_THAT(ops_.Run("dequantize", {q, s}).values<float>(), ElementsAre(-2.5, -1.5, -0.5));
  const Tensor per_axis = Tensor::Of<float>({3}, {1, 2, 4});
  EXPECT_THAT(ops_.Run("dequantize", {q, per_axis}, {{"axis", 0}}).values<float>(), ElementsAre(-5, -6, -4));
  for (float bad : {0.0f, -1.0f, std::nanf(""), 1e-40f}) {
    EXPECT_EQ(ops_.RunAll("quantize", {x, Tensor::Scalar(bad)}).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(QuantizeTest, Dequantize) {
  const Tensor q = Tensor::Of<uint8_t>({3}, {0, 128, 255});
  EXPECT_THAT(ops_.Run("dequantize", {q}, {{"scales", Floats{2}}, {"zero_points", Ints{128}}}).values<float>(),
              ElementsAre(-256, 0, 254));
  Tensor typed = q;
  typed.set_type({DType::kU8, {3}, PerTensor(0.5f, 1), Layout::kRowMajor});
  EXPECT_THAT(ops_.Run("dequantize", {typed}).values<float>(), ElementsAre(-0.5, 63.5, 127));
  // The attributes win over the type.
  EXPECT_THAT(ops_.Run("dequantize", {typed}, {{"scales", Floats{1}}}).values<float>(), ElementsAre(0, 128, 255));
  const Tensor wide = Tensor::Of<int32_t>({1}, {16777217});
  EXPECT_EQ(ops_.Run("dequantize", {wide}, {{"scales", Floats{1}}}).At(0), 16777216);
}

TEST_F(QuantizeTest, QuantizesIntegers) {
  EXPECT_THAT(
      ops_.Run("quantize", {Tensor::Of<int32_t>({2}, {5, -9})}, {{"scales", Floats{2}}, {"zero_points", Ints{1}}})
          .values<uint8_t>(),
      ElementsAre(3, 0));
}

TEST_F(QuantizeTest, Errors) {
  const auto error = [&](const AttributeMap& attributes) { return ops_.Infer("quantize", {F32({2, 3})}, attributes); };
  EXPECT_THAT(error({}), HasSubstr("scales=[]: wanted a scale, here or as an operand"));
  EXPECT_THAT(error({{"scales", Floats{0}}}), HasSubstr("scale 0, wanted a normal float > 0"));
  EXPECT_THAT(error({{"scales", Floats{1e-50}}}), HasSubstr("wanted a normal float > 0"));
  EXPECT_THAT(error({{"scales", Floats{std::numeric_limits<double>::infinity()}}}), HasSubstr("scale inf"));
  EXPECT_THAT(error({{"scales", Floats{1}}, {"zero_points", Ints{256}}}), HasSubstr("values of u8, in [0, 255]"));
  EXPECT_THAT(error({{"scales", Floats{1}}, {"zero_points", Ints{1, 2}}}), HasSubstr("as many as scales, 1"));
  EXPECT_THAT(error({{"scales", Floats{1, 2}}}), HasSubstr("2 scales and 2 zero points, wanted 1"));
  EXPECT_THAT(error({{"scales", Floats{1, 2}}, {"axis", 1}}), HasSubstr("wanted 3 of each"));
  EXPECT_THAT(error({{"scales", Floats{1}}, {"axis", 2}}),
              HasSubstr("axis=2: wanted -1 (per tensor) or an axis of [2,3]"));
  EXPECT_THAT(error({{"scales", Floats{1}}, {"dtype", DType::kF32}}),
              HasSubstr("dtype=f32: wanted u8, i8, i16 or i32"));
  EXPECT_THAT(ops_.Infer("quantize", {F32({2}), F32({})}, {{"scales", Floats{1}}}),
              HasSubstr("none beside the operand"));
  EXPECT_THAT(ops_.Infer("quantize", {F32({2}), F32({2})}), HasSubstr("scale f32[2]: wanted one value"));
  EXPECT_THAT(ops_.Infer("quantize", {F32({2}), F32({3})}, {{"axis", 0}}), HasSubstr("scale f32[3]: wanted shape [2]"));
  const TensorType i8{DType::kI8, {}, std::nullopt, Layout::kRowMajor};
  EXPECT_THAT(ops_.Infer("quantize", {F32({2}), F32({}), i8}), HasSubstr("zero_point i8[]: wanted element type u8"));
  EXPECT_THAT(ops_.Infer("quantize", {F32({2}), std::nullopt, i8}), HasSubstr("without a scale"));
  EXPECT_THAT(ops_.Infer("dequantize", {i8}), HasSubstr("input i8[]: no scale"));
  EXPECT_THAT(ops_.Infer("dequantize", {F32({2})}), HasSubstr("wanted u8, i8, i16 or i32"));
}

}  // namespace
}  // namespace fuselage::ops::quantize
