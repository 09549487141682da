#include "ir/ops/int8/matmul/matmul.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::int8::matmul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor Quantized(Tensor codes, QuantParams params) {
  codes.set_type({codes.dtype(), codes.shape(), std::move(params), Layout::kRowMajor});
  return codes;
}

class Int8MatmulTest : public ::testing::Test {
 protected:
  const OpTester ops_{Register};
  // Less their zero points: [0, 10; -10, 245] and [1, -2; 127, -123].
  const Tensor a_ = Quantized(Tensor::Of<uint8_t>({2, 2}, {10, 20, 0, 255}), PerTensor(0.5f, 10));
  const Tensor b_ = Quantized(Tensor::Of<int8_t>({2, 2}, {-4, -7, 122, -128}), PerTensor(0.25f, -5));
};

// Sums: [1270, -1230; 31105, -30115].
TEST_F(Int8MatmulTest, FloatResult) {
  EXPECT_THAT(ops_.Run("int8.matmul", {a_, b_}, {{"out_dtype", DType::kF32}}).values<float>(),
              ElementsAre(1270 * 0.125, -1230 * 0.125, 31105 * 0.125, (-10 * -2 + 245 * -123) * 0.125));
}

TEST_F(Int8MatmulTest, CodesRoundHalfToEvenAndSaturate) {
  const AttributeMap attributes = {{"out_dtype", DType::kI8}, {"out_scale", 50.0}, {"out_zero_point", -3}};
  // Multiplier 0.0025: 3.175, -3.075, 77.76, -75.29.
  EXPECT_THAT(ops_.Run("int8.matmul", {a_, b_}, attributes).values<int8_t>(), ElementsAre(0, -6, 75, -78));
  const Tensor a = Quantized(Tensor::Of<int8_t>({4, 1}, {1, 3, -1, 127}), PerTensor(1));
  const Tensor b = Quantized(Tensor::Of<uint8_t>({1, 1}, {255}), PerTensor(1, 254));
  EXPECT_THAT(ops_.Run("int8.matmul", {a, b}, {{"out_dtype", DType::kI8}, {"out_scale", 2.0}}).values<int8_t>(),
              ElementsAre(0, 2, 0, 64));
  EXPECT_THAT(ops_.Run("int8.matmul", {a, b}, {{"out_scale", 0.25}}).values<uint8_t>(), ElementsAre(4, 12, 0, 255));
}

TEST_F(Int8MatmulTest, BatchesBroadcastAndVectorsLoseTheirAxis) {
  const Tensor rows = Quantized(Tensor::Of<uint8_t>({2, 1, 1, 2}, {0, 1, 2, 3}), PerTensor(1));
  const Tensor columns = Quantized(Tensor::Of<uint8_t>({3, 2, 1}, {0, 1, 2, 3, 4, 5}), PerTensor(1));
  const Tensor y = ops_.Run("int8.matmul", {rows, columns}, {{"out_dtype", DType::kF32}});
  EXPECT_EQ(y.shape(), (Shape{2, 3, 1, 1}));
  EXPECT_THAT(y.values<float>(), ElementsAre(1, 3, 5, 3, 13, 23));
  const Tensor v = Quantized(Tensor::Of<uint8_t>({2}, {11, 12}), PerTensor(2, 10));
  const Tensor row = ops_.Run("int8.matmul", {v, b_}, {{"out_dtype", DType::kF32}});
  EXPECT_EQ(row.shape(), (Shape{2}));
  EXPECT_THAT(row.values<float>(), ElementsAre((1 + 254) * 0.5, (-2 - 246) * 0.5));
}

TEST_F(Int8MatmulTest, EmptyInnerDimensionGivesZeroPoints) {
  const Tensor a = Quantized(Tensor(DType::kU8, {1, 0}), PerTensor(1, 3));
  const Tensor b = Quantized(Tensor(DType::kI8, {0, 2}), PerTensor(1, 3));
  EXPECT_THAT(ops_.Run("int8.matmul", {a, b}, {{"out_zero_point", 7}}).values<uint8_t>(), ElementsAre(7, 7));
}

TEST_F(Int8MatmulTest, Errors) {
  const auto infer = [&](DType dtype, Shape a, Shape b) {
    const auto quant = dtype == DType::kF32 ? std::nullopt : std::make_optional(PerTensor(1));
    return ops_.Infer("int8.matmul", {{{dtype, a, quant, Layout::kRowMajor}}, {{dtype, b, quant, Layout::kRowMajor}}});
  };
  EXPECT_THAT(infer(DType::kF32, {2, 3}, {3, 2}), HasSubstr("wanted u8 or i8 codes with one scale"));
  EXPECT_THAT(infer(DType::kU8, {2, 3}, {2, 2}), HasSubstr("inner dimensions 3 and 2 differ"));
  EXPECT_THAT(infer(DType::kU8, {}, {2, 2}), HasSubstr("rank 0, wanted at least 1"));
  EXPECT_THAT(infer(DType::kI8, {1, 33026}, {33026, 1}),
              HasSubstr("sums of 33026 products may overflow 32 bits, wanted at most 33025"));
  EXPECT_EQ(infer(DType::kI8, {1, 33025}, {33025, 1}), "u8[1,1]<scale=1>");
  const Tensor tiny = Quantized(Tensor::Of<uint8_t>({1, 1}, {1}), PerTensor(1e-30f));
  const auto result = ops_.RunAll("int8.matmul", {tiny, tiny});
  EXPECT_THAT(std::string(result.status().message()),
              HasSubstr("the product of the operands' scales is 0, wanted a normal"));
}

}  // namespace
}  // namespace fuselage::ops::int8::matmul
