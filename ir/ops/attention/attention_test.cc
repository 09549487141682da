#include "ir/ops/attention/attention.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::attention {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;

constexpr char kOp[] = "scaled_dot_product_attention";

TensorType F32(Shape shape) { return {DType::kF32, std::move(shape), std::nullopt, Layout::kRowMajor}; }
TensorType Bool(Shape shape) { return {DType::kBool, std::move(shape), std::nullopt, Layout::kRowMajor}; }

class AttentionTest : public ::testing::Test {
 protected:
  // Scores 0 and ln 3 for the first query, which so weighs the values 1 : 3; 0 and ln 3 * 2 for the second, 1 : 9.
  const float ln3_ = std::log(3.0f);
  const Tensor query_ = Tensor::Of<float>({1, 1, 2, 1}, {1, 2}), key_ = Tensor::Of<float>({1, 1, 2, 1}, {0, ln3_});
  const Tensor value_ = Tensor::Of<float>({1, 1, 2, 2}, {4, 10, 8, 20});
  const OpTester ops_{Register};
};

TEST_F(AttentionTest, WeighsTheValues) {
  const Tensor y = ops_.Run(kOp, {query_, key_, value_}, {{"scale", 1.0}});
  EXPECT_EQ(y.shape(), (Shape{1, 1, 2, 2}));
  EXPECT_THAT(y.values<float>(), ElementsAre(FloatEq(7), FloatEq(17.5), FloatEq(7.6), FloatEq(19)));
  EXPECT_THAT(ops_.Run(kOp, {query_, key_, value_}, {{"scale", 0.5}}).values<float>()[2], FloatEq(7));
  EXPECT_THAT(ops_.Run(kOp, {query_, key_, value_}, {{"scale", 0.0}}).values<float>(), ElementsAre(6, 15, 6, 15));
}

TEST_F(AttentionTest, Masks) {
  const Tensor added = Tensor::Of<float>({2}, {ln3_, 0});
  EXPECT_THAT(ops_.Run(kOp, {query_, key_, value_, added}, {{"scale", 1.0}}).values<float>(),
              ElementsAre(FloatEq(6), FloatEq(15), FloatEq(7), FloatEq(17.5)));
  const Tensor rows = Tensor::Of<bool>({2, 2}, {true, false, false, false});
  EXPECT_THAT(ops_.Run(kOp, {query_, key_, value_, rows}, {{"scale", 1.0}}).values<float>(), ElementsAre(4, 10, 0, 0));
  const float never = -std::numeric_limits<float>::infinity();
  EXPECT_THAT(
      ops_.Run(kOp, {query_, key_, value_, Tensor::Of<float>({2, 1}, {0, never})}, {{"scale", 0.0}}).values<float>(),
      ElementsAre(6, 15, 0, 0));
}

TEST_F(AttentionTest, Causal) {
  EXPECT_THAT(ops_.Run(kOp, {query_, key_, value_}, {{"scale", 0.0}, {"is_causal", true}}).values<float>(),
              ElementsAre(4, 10, 6, 15));
}

TEST_F(AttentionTest, ACapBeforeTheMask) {
  const float cap = 2, s = cap * std::tanh(2 * ln3_ / cap);
  const double share = std::exp(s) / (1 + std::exp(s));
  const Tensor y = ops_.Run(kOp, {query_, key_, value_}, {{"scale", 1.0}, {"softcap", 2.0}});
  EXPECT_NEAR(y.At(2), 4 + 4 * share, 1e-6);
}

// Queries of heads 0 and 1 look at keys 0, those of heads 2 and 3 at keys 1.
TEST_F(AttentionTest, GroupsOfHeads) {
  const Tensor q = Iota({1, 4, 1, 1}), k = Tensor::Of<float>({1, 2, 1, 1}, {1, 2}), v = Iota({1, 2, 1, 1}, 5);
  EXPECT_THAT(ops_.Run(kOp, {q, k, v}, {{"scale", 1.0}}).values<float>(), ElementsAre(5, 5, 6, 6));
}

TEST_F(AttentionTest, AnyNumberOfLeadingAxes) {
  EXPECT_EQ(ops_.Run(kOp, {Iota({3, 2}), Iota({4, 2}), Iota({4, 5})}, {{"scale", 1.0}}).shape(), (Shape{3, 5}));
  EXPECT_EQ(ops_.Run(kOp, {Iota({6, 3, 2}), Iota({2, 4, 2}), Iota({2, 4, 1})}, {{"scale", 1.0}}).shape(),
            (Shape{6, 3, 1}));
  EXPECT_THAT(
      ops_.Run(kOp, {Iota({1, 1, 2, 1}), Iota({1, 1, 0, 1}), Iota({1, 1, 0, 1})}, {{"scale", 1.0}}).values<float>(),
      ElementsAre(0, 0));
}

TEST_F(AttentionTest, Errors) {
  const AttributeMap scale = {{"scale", 1.0}};
  const TensorType q = F32({1, 4, 3, 2});
  EXPECT_THAT(ops_.Infer(kOp, {F32({2}), F32({2}), F32({2})}, scale), HasSubstr("query f32[2]: rank 1"));
  EXPECT_THAT(ops_.Infer(kOp, {q, F32({1, 3, 5, 2}), F32({1, 3, 5, 2})}, scale), HasSubstr("H a multiple of K"));
  EXPECT_THAT(ops_.Infer(kOp, {q, F32({1, 4, 5, 1}), F32({1, 4, 5, 2})}, scale), HasSubstr("H a multiple of K"));
  EXPECT_THAT(ops_.Infer(kOp, {q, F32({1, 4, 5, 2}), F32({1, 4, 6, 2})}, scale), HasSubstr("H a multiple of K"));
  EXPECT_THAT(ops_.Infer(kOp, {q, F32({2, 4, 5, 2}), F32({2, 4, 5, 2})}, scale), HasSubstr("H a multiple of K"));
  const TensorType k = F32({1, 2, 5, 2});
  EXPECT_THAT(ops_.Infer(kOp, {q, k, k, Bool({3, 4})}, scale), HasSubstr("mask bool[3,4]: wanted what broadcasts to"));
  EXPECT_THAT(ops_.Infer(kOp, {q, k, k, F32({2, 1, 3, 5})}, scale), HasSubstr("wanted what broadcasts to [1,4,3,5]"));
  EXPECT_THAT(ops_.Infer(kOp, {q, k, k}, {{"scale", 1.0}, {"softcap", -1.0}}), HasSubstr("softcap"));
  EXPECT_EQ(ops_.Infer(kOp, {q, k, k, Bool({3, 1})}, scale), "f32[1,4,3,2]");
}

// A causal query i looks at i + 1 keys: 3 pairs of four.
TEST_F(AttentionTest, Cost) {
  const ir::OpSchema& op = *ops_.registry().FindOrNull(kOp);
  const ir::Type q = F32({2, 1, 2, 8}), v = F32({2, 1, 2, 4}), y = F32({2, 1, 2, 4});
  EXPECT_EQ(ops_.registry().CostOf(op, {{"scale", 1.0}}, {&q, &q, &v}, y).macs, 2 * 4 * 12);
  EXPECT_EQ(ops_.registry().CostOf(op, {{"scale", 1.0}, {"is_causal", true}}, {&q, &q, &v}, y).macs, 2 * 3 * 12);
}

}  // namespace
}  // namespace fuselage::ops::attention
