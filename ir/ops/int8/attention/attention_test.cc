#include "ir/ops/int8/attention/attention.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::int8::attention {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;

constexpr float kNever = -std::numeric_limits<float>::infinity();

Tensor Quantized(Tensor codes, QuantParams params) {
  codes.set_type({codes.dtype(), codes.shape(), std::move(params), Layout::kRowMajor});
  return codes;
}

class Int8AttentionTest : public ::testing::Test {
 protected:
  Tensor Run(std::vector<std::optional<Tensor>> operands, AttributeMap attributes) {
    attributes.emplace("scale", 1.0);
    return ops_.Run("int8.attention", std::move(operands), attributes);
  }

  const OpTester ops_{Register};
  // One query of 2; keys 0.5, 0 and -0.5: scores 1, 0, -1, weights 255, 94 (93.8), 35 (34.5), whose sum is 384.
  const Tensor q_ = Quantized(Tensor::Of<uint8_t>({1, 1}, {14}), PerTensor(0.5f, 10));
  const Tensor k_ = Quantized(Tensor::Of<int8_t>({3, 1}, {-3, -5, -7}), PerTensor(0.25f, -5));
  // Less their zero point 10, -6, 2 and 0, 0, 8.
  const Tensor v_ = Quantized(Tensor::Of<uint8_t>({3, 2}, {18, 8, 2, 8, 10, 16}), PerTensor(0.125f, 8));
};

TEST_F(Int8AttentionTest, FloatResult) {
  EXPECT_THAT(Run({q_, k_, v_}, {{"out_dtype", DType::kF32}}).values<float>(),
              ElementsAre(FloatEq((255 * 10 - 94 * 6 + 35 * 2) * (0.125f / 384)), FloatEq(35 * 8 * (0.125f / 384))));
}

TEST_F(Int8AttentionTest, CodesSaturate) {
  // 2056 / 384 = 5.354 and 280 / 384 = 0.729, in steps of 1/8 and of a smaller one.
  EXPECT_THAT(Run({q_, k_, v_}, {{"out_scale", 0.125}, {"out_zero_point", 3}}).values<uint8_t>(), ElementsAre(8, 4));
  EXPECT_THAT(Run({q_, k_, v_}, {{"out_dtype", DType::kI8}, {"out_scale", 0.003}}).values<int8_t>(),
              ElementsAre(127, 30));
}

TEST_F(Int8AttentionTest, MasksForbidKeysAndMoveScores) {
  const Tensor last = Tensor::Of<bool>({3}, {false, false, true});
  EXPECT_THAT(Run({q_, k_, v_, last}, {{"out_dtype", DType::kF32}}).values<float>(),
              ElementsAre(FloatEq(0.25f), FloatEq(1)));
  const Tensor none = Tensor::Of<bool>({3}, {false, false, false});
  EXPECT_THAT(Run({q_, k_, v_, none}, {{"out_zero_point", 7}}).values<uint8_t>(), ElementsAre(7, 7));
  const Tensor moved = Tensor::Of<float>({1, 3}, {kNever, 0, 1});  // Scores 0 and 0.
  EXPECT_THAT(Run({q_, k_, v_, moved}, {{"out_dtype", DType::kF32}}).values<float>(),
              ElementsAre(FloatEq(-0.25f), FloatEq(0.5f)));
  EXPECT_THAT(Run({q_, k_, v_}, {{"out_dtype", DType::kF32}, {"is_causal", true}}).values<float>(),
              ElementsAre(FloatEq(1.25f), 0));
}

// Two heads of queries read one of keys; the weights 255 and 1 of scores 5.5 apart, 255 and 0 of some 7.
TEST_F(Int8AttentionTest, GroupedHeadsAndTheSmallestWeight) {
  const Tensor q = Quantized(Tensor::Of<uint8_t>({2, 1, 1}, {11, 14}), PerTensor(0.5f));
  const Tensor k = Quantized(Tensor::Of<uint8_t>({1, 2, 1}, {0, 1}), PerTensor(1));
  const Tensor v = Quantized(Tensor::Of<uint8_t>({1, 2, 1}, {255, 0}), PerTensor(1));
  EXPECT_THAT(Run({q, k, v}, {{"out_dtype", DType::kF32}}).values<float>(), ElementsAre(FloatEq(255.0f / 256), 0));
}

TEST_F(Int8AttentionTest, Errors) {
  const auto infer = [&](DType dtype, Shape q, Shape k, Shape v) {
    const auto type = [&](Shape shape) {
      const auto quant = dtype == DType::kF32 ? std::nullopt : std::make_optional(PerTensor(1));
      return TensorType{dtype, std::move(shape), quant, Layout::kRowMajor};
    };
    return ops_.Infer("int8.attention", {{type(q)}, {type(k)}, {type(v)}}, {{"scale", 1.0}});
  };
  EXPECT_EQ(infer(DType::kU8, {4, 5, 8}, {2, 6, 8}, {2, 6, 3}), "u8[4,5,3]<scale=1>");
  EXPECT_THAT(infer(DType::kF32, {5, 8}, {6, 8}, {6, 3}), HasSubstr("wanted u8 or i8 codes with one scale"));
  EXPECT_THAT(infer(DType::kU8, {5, 8}, {6, 7}, {6, 3}), HasSubstr("wanted [..., H, S, D], [..., K, T, D]"));
  EXPECT_EQ(infer(DType::kU8, {1, 8}, {33026, 8}, {33026, 3}), "u8[1,3]<scale=1>");  // Evaluation refuses.
  const Tensor tiny = Quantized(Tensor::Of<uint8_t>({1, 1}, {1}), PerTensor(1e-30f));
  EXPECT_THAT(std::string(ops_.RunAll("int8.attention", {tiny, tiny, tiny}, {{"scale", 1.0}}).status().message()),
              HasSubstr("the product of the scales of query, key and scores is 0, wanted a normal"));
  const Tensor one = Quantized(Tensor(DType::kU8, {1, 1}), PerTensor(1)),
               many = Quantized(Tensor(DType::kU8, {33026, 1}), PerTensor(1));
  EXPECT_THAT(std::string(ops_.RunAll("int8.attention", {one, many, many}, {{"scale", 1.0}}).status().message()),
              HasSubstr("sums of 33026 products may overflow 32 bits, wanted at most 33025"));
}

}  // namespace
}  // namespace fuselage::ops::int8::attention
