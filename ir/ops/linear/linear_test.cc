#include "ir/ops/linear/linear.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::linear {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TensorType F32(Shape shape) { return {DType::kF32, std::move(shape), std::nullopt, Layout::kRowMajor}; }

class LinearTest : public ::testing::Test {
 protected:
  const OpTester ops_{Register};
};

TEST_F(LinearTest, BiasAndActivation) {
  const Tensor x = Tensor::Of<float>({2, 2}, {1, 2, 3, 4}), w = Tensor::Of<float>({3, 2}, {1, 0, 0, 1, -1, -1});
  EXPECT_THAT(ops_.Run("linear", {x, w}).values<float>(), ElementsAre(1, 2, -3, 3, 4, -7));
  const Tensor b = Tensor::Of<float>({3}, {10, 20, 5});
  EXPECT_THAT(ops_.Run("linear", {x, w, b}, {{"activation", "relu"}}).values<float>(),
              ElementsAre(11, 22, 2, 13, 24, 0));
}

TEST_F(LinearTest, AnyRank) {
  const Tensor w = Tensor::Of<float>({1, 2}, {1, 1});
  EXPECT_EQ(ops_.Run("linear", {Iota({2, 3, 2}), w}).shape(), (Shape{2, 3, 1}));
  EXPECT_THAT(ops_.Run("linear", {Iota({2}, 1), w}).values<float>(), ElementsAre(3));
  EXPECT_EQ(ops_.Run("linear", {Iota({0, 2}), w}).shape(), (Shape{0, 1}));
}

TEST_F(LinearTest, QuantizedWeight) {
  Tensor w = Tensor::Of<int8_t>({2, 1}, {3, -3});
  w.set_type({DType::kI8, w.shape(), PerAxis(0, {0.5f, 2.0f}), Layout::kRowMajor});
  EXPECT_THAT(ops_.Run("linear", {Tensor::Of<float>({1, 1}, {2}), w}).values<float>(), ElementsAre(3, -12));
}

TEST_F(LinearTest, Errors) {
  EXPECT_THAT(ops_.Infer("linear", {F32({2, 3}), F32({4, 2})}),
              HasSubstr("input f32[2,3]: 3 features, wanted 2 (weight [4,2])"));
  EXPECT_THAT(ops_.Infer("linear", {F32({}), F32({4, 2})}), HasSubstr("rank 0, wanted at least 1"));
  EXPECT_THAT(ops_.Infer("linear", {F32({2}), F32({2})}), HasSubstr("weight f32[2]: rank 1, wanted 2"));
  EXPECT_THAT(ops_.Infer("linear", {F32({2, 3}), F32({4, 3}), F32({3})}), HasSubstr("bias f32[3]: wanted shape [4]"));
  EXPECT_THAT(ops_.Infer("linear", {F32({2, 3}), F32({4, 3})}, {{"activation", "sin"}}),
              HasSubstr("activation=\"sin\""));
  EXPECT_THAT(ops_.Infer("linear", {{{DType::kI32, {2, 3}, std::nullopt, Layout::kRowMajor}}, F32({4, 3})}),
              HasSubstr("wanted f16, f32 or f64"));
}

}  // namespace
}  // namespace fuselage::ops::linear
