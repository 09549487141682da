#include "ir/ops/layer_norm/layer_norm.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::layer_norm {
namespace {

using Ints = std::vector<int64_t>;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;

TensorType F32(Shape shape) { return {DType::kF32, std::move(shape), std::nullopt, Layout::kRowMajor}; }

class LayerNormTest : public ::testing::Test {
 protected:
  const OpTester ops_{Register};
};

TEST_F(LayerNormTest, EachRowHasItsOwnStatistics) {
  const Tensor x = Tensor::Of<float>({2, 2}, {1, 3, 10, 30});  // Means 2 and 20, variances 1 and 100.
  const AttributeMap attributes = {{"normalized_shape", Ints{2}}, {"eps", 0.0}};
  EXPECT_THAT(ops_.Run("layer_norm", {x}, attributes).values<float>(), ElementsAre(-1, 1, -1, 1));
  const Tensor weight = Tensor::Of<float>({2}, {2, 3}), bias = Tensor::Of<float>({2}, {0.5, 100});
  EXPECT_THAT(ops_.Run("layer_norm", {x, weight, bias}, attributes).values<float>(), ElementsAre(-1.5, 103, -1.5, 103));
  EXPECT_THAT(ops_.Run("layer_norm", {x, std::nullopt, bias}, attributes).values<float>(),
              ElementsAre(-0.5, 101, -0.5, 101));
}

TEST_F(LayerNormTest, SeveralAxesAndEps) {
  const Tensor x = Tensor::Of<float>({1, 2, 2}, {1, 3, 5, 7});  // Mean 4, variance 5.
  const float s = 1 / std::sqrt(9.0f);
  EXPECT_THAT(ops_.Run("layer_norm", {x}, {{"normalized_shape", Ints{2, 2}}, {"eps", 4.0}}).values<float>(),
              ElementsAre(FloatEq(-3 * s), FloatEq(-s), FloatEq(s), FloatEq(3 * s)));
}

TEST_F(LayerNormTest, RmsNormKeepsTheMean) {
  const Tensor x = Tensor::Of<float>({2, 2}, {1, 7, 3, 4}), weight = Tensor::Of<float>({2}, {2, 3});
  const AttributeMap attributes = {{"normalized_shape", Ints{2}}, {"eps", 0.0}};  // Mean squares 25 and 12.5.
  EXPECT_THAT(ops_.Run("rms_norm", {x, weight}, attributes).values<float>(),
              ElementsAre(FloatEq(0.4f), FloatEq(4.2f), FloatEq(6 / std::sqrt(12.5f)), FloatEq(12 / std::sqrt(12.5f))));
}

// Channels 0, 1: mean 4, variance 5. Channels 2, 3: mean 20, variance 500.
TEST_F(LayerNormTest, GroupsOfChannels) {
  const Tensor x = Tensor::Of<float>({1, 4, 2}, {1, 3, 5, 7, -10, 10, 30, 50});
  const Tensor weight = Tensor::Of<float>({4}, {1, 1, 1, 2}), bias = Tensor::Of<float>({4}, {0, 10, 0, 0});
  const float s = 1 / std::sqrt(5.0f), t = 10 * s / 10;
  EXPECT_THAT(ops_.Run("group_norm", {x, weight, bias}, {{"num_groups", 2}, {"eps", 0.0}}).values<float>(),
              ElementsAre(FloatEq(-3 * s), FloatEq(-s), FloatEq(s + 10), FloatEq(3 * s + 10), FloatEq(-3 * t),
                          FloatEq(-t), FloatEq(2 * t), FloatEq(6 * t)));
  EXPECT_THAT(ops_.Run("instance_norm", {x, weight, bias}, {{"eps", 0.0}}).values<float>(),
              ElementsAre(-1, 1, 9, 11, -1, 1, -2, 2));
}

TEST_F(LayerNormTest, Empty) {
  EXPECT_EQ(ops_.Run("layer_norm", {Iota({0, 3})}, {{"normalized_shape", Ints{3}}}).num_elements(), 0);
  EXPECT_EQ(ops_.Run("layer_norm", {Iota({3, 0})}, {{"normalized_shape", Ints{0}}}).num_elements(), 0);
}

TEST_F(LayerNormTest, Errors) {
  const AttributeMap of3 = {{"normalized_shape", Ints{3}}};
  EXPECT_EQ(ops_.Infer("layer_norm", {F32({2, 3})}, of3), "f32[2,3]");
  EXPECT_THAT(ops_.Infer("layer_norm", {F32({3, 2})}, of3), HasSubstr("wanted one or more trailing sizes of f32[3,2]"));
  EXPECT_THAT(ops_.Infer("layer_norm", {F32({3})}, {{"normalized_shape", Ints{1, 3}}}), HasSubstr("trailing sizes"));
  EXPECT_THAT(ops_.Infer("layer_norm", {F32({3})}, {{"normalized_shape", Ints{}}}), HasSubstr("trailing sizes"));
  EXPECT_THAT(ops_.Infer("layer_norm", {F32({2, 3}), F32({2})}, of3), HasSubstr("weight f32[2]: wanted shape [3]"));
  EXPECT_THAT(ops_.Infer("layer_norm", {F32({2, 3})}, {{"normalized_shape", Ints{3}}, {"eps", -1.0}}),
              HasSubstr("finite and >= 0"));
  EXPECT_THAT(ops_.Infer("group_norm", {F32({1, 4, 2})}, {{"num_groups", 3}}),
              HasSubstr("a divisor of the 4 channels"));
  EXPECT_THAT(ops_.Infer("instance_norm", {F32({4})}), HasSubstr("rank 1, wanted at least 2"));
  EXPECT_THAT(ops_.Infer("instance_norm", {F32({1, 4}), F32({2})}), HasSubstr("weight f32[2]: wanted shape [4]"));
  EXPECT_THAT(ops_.Infer("layer_norm", {{{DType::kI32, {3}, std::nullopt, Layout::kRowMajor}}}, of3),
              HasSubstr("wanted f16"));
}

}  // namespace
}  // namespace fuselage::ops::layer_norm
