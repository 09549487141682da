#include "ir/ops/softmax/softmax.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::softmax {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;

class SoftmaxTest : public ::testing::Test {
 protected:
  const OpTester ops_{Register};
};

TEST_F(SoftmaxTest, AlongEachAxis) {
  const Tensor x = Tensor::Of<float>({2, 2}, {0, std::log(3.0f), 0, 0});
  EXPECT_THAT(ops_.Run("softmax", {x}).values<float>(), ElementsAre(FloatEq(0.25), FloatEq(0.75), 0.5, 0.5));
  EXPECT_THAT(ops_.Run("softmax", {x}, {{"dim", 0}}).values<float>(),
              ElementsAre(0.5, FloatEq(0.75), 0.5, FloatEq(0.25)));
}

TEST_F(SoftmaxTest, LargeValuesDoNotOverflow) {
  EXPECT_THAT(ops_.Run("softmax", {Tensor::Of<float>({2}, {1e4f, 1e4f})}).values<float>(), ElementsAre(0.5, 0.5));
  EXPECT_THAT(ops_.Run("softmax", {Tensor::Of<float>({2}, {-1e30f, 1e30f})}).values<float>(), ElementsAre(0, 1));
}

TEST_F(SoftmaxTest, LogSoftmax) {
  const Tensor x = Tensor::Of<float>({2, 2}, {0, std::log(3.0f), 5000, 5000});
  EXPECT_THAT(ops_.Run("log_softmax", {x}).values<float>(),
              ElementsAre(FloatEq(-std::log(4.0f)), FloatEq(std::log(0.75f)), FloatEq(-std::log(2.0f)),
                          FloatEq(-std::log(2.0f))));
}

TEST_F(SoftmaxTest, HardmaxTakesTheFirstOfEqualOnes) {
  const Tensor x = Tensor::Of<float>({2, 3}, {1, 3, 3, 2, 1, 0});
  EXPECT_THAT(ops_.Run("hardmax", {x}).values<float>(), ElementsAre(0, 1, 0, 1, 0, 0));
  EXPECT_THAT(ops_.Run("hardmax", {x}, {{"dim", 0}}).values<float>(), ElementsAre(0, 1, 1, 1, 0, 0));
}

TEST_F(SoftmaxTest, EmptyAndErrors) {
  EXPECT_EQ(ops_.Run("softmax", {Iota({2, 0})}).num_elements(), 0);
  EXPECT_THAT(ops_.Infer("softmax", {Tensor::Scalar(1.0f).type()}), HasSubstr("dim: axis -1 not in"));
  EXPECT_THAT(ops_.Infer("softmax", {{{DType::kI32, {2}, std::nullopt, Layout::kRowMajor}}}), HasSubstr("wanted f16"));
}

}  // namespace
}  // namespace fuselage::ops::softmax
