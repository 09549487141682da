#include "ir/ops/batch_norm/batch_norm.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::batch_norm {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;

TensorType F32(Shape shape) { return {DType::kF32, std::move(shape), std::nullopt, Layout::kRowMajor}; }
Tensor Vector(std::vector<float> values) { return Tensor::Of<float>({static_cast<int64_t>(values.size())}, values); }

class BatchNormTest : public ::testing::Test {
 protected:
  const OpTester ops_{Register};
};

TEST_F(BatchNormTest, RunningStatistics) {
  const Tensor x = Tensor::Of<float>({1, 2, 1, 2}, {1, 3, 10, 20});
  const Tensor y =
      ops_.Run("batch_norm", {x, Vector({2, 1}), Vector({0, 100}), Vector({1, 10}), Vector({4, 25})}, {{"eps", 0.0}});
  EXPECT_THAT(y.values<float>(), ElementsAre(0, 2, 100, 102));
  // Neither weight nor bias: affine=False.
  const Tensor plain =
      ops_.Run("batch_norm", {x, std::nullopt, std::nullopt, Vector({1, 10}), Vector({3, 24})}, {{"eps", 1.0}});
  EXPECT_THAT(plain.values<float>(), ElementsAre(0, 1, 0, 2));
}

TEST_F(BatchNormTest, BatchStatistics) {
  const Tensor x = Tensor::Of<float>({2, 1, 2}, {1, 3, 5, 7});  // mean 4, biased variance 5
  const float s = 1 / std::sqrt(5.0f);
  const auto wanted = ElementsAre(FloatEq(-3 * s), FloatEq(-1 * s), FloatEq(1 * s), FloatEq(3 * s));
  EXPECT_THAT(ops_.Run("batch_norm", {x}, {{"eps", 0.0}}).values<float>(), wanted);
  EXPECT_THAT(ops_.Run("batch_norm", {x, std::nullopt, std::nullopt, Vector({100}), Vector({1})},
                       {{"eps", 0.0}, {"training", true}})
                  .values<float>(),
              wanted);
}

TEST_F(BatchNormTest, Errors) {
  EXPECT_EQ(ops_.Infer("batch_norm", {F32({2, 3})}), "f32[2,3]");
  EXPECT_THAT(ops_.Infer("batch_norm", {F32({3})}), HasSubstr("rank 1, wanted at least 2"));
  EXPECT_THAT(ops_.Infer("batch_norm", {F32({1, 3, 2}), F32({2})}), HasSubstr("weight f32[2]: wanted shape [3]"));
  EXPECT_THAT(ops_.Infer("batch_norm", {F32({1, 3, 2}), std::nullopt, std::nullopt, F32({3})}),
              HasSubstr("wanted both or none"));
  EXPECT_THAT(ops_.Infer("batch_norm", {F32({1, 3})}, {{"eps", -1.0}}), HasSubstr("eps=-1.0: wanted finite and >= 0"));
  EXPECT_THAT(ops_.Infer("batch_norm", {F32({1, 3})}, {{"eps", std::numeric_limits<double>::quiet_NaN()}}),
              HasSubstr("eps=nan"));
}

}  // namespace
}  // namespace fuselage::ops::batch_norm
