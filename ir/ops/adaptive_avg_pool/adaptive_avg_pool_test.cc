#include "ir/ops/adaptive_avg_pool/adaptive_avg_pool.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::adaptive_avg_pool {
namespace {

using Ints = std::vector<int64_t>;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TensorType F32(Shape shape) { return {DType::kF32, std::move(shape), std::nullopt, Layout::kRowMajor}; }

class AdaptiveAvgPoolTest : public ::testing::Test {
 protected:
  const OpTester ops_{Register};
};

TEST_F(AdaptiveAvgPoolTest, WindowsOverlapWhereTheSizeDoesNotDivide) {
  const Tensor x = Tensor::Of<float>({1, 1, 5}, {1, 2, 3, 4, 5});
  const auto pool = [&](int64_t size) { return ops_.Run("adaptive_avg_pool1d", {x}, {{"output_size", Ints{size}}}); };
  EXPECT_THAT(pool(1).values<float>(), ElementsAre(3));
  EXPECT_THAT(pool(2).values<float>(), ElementsAre(2, 4));         // [0, 3), [2, 5)
  EXPECT_THAT(pool(3).values<float>(), ElementsAre(1.5, 3, 4.5));  // [0, 2), [1, 4), [3, 5)
  EXPECT_THAT(pool(5).values<float>(), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(pool(10).values<float>(), ElementsAre(1, 1, 2, 2, 3, 3, 4, 4, 5, 5));
}

TEST_F(AdaptiveAvgPoolTest, EachPlaneAndAxis) {
  const Tensor y = ops_.Run("adaptive_avg_pool2d", {Iota({2, 2, 2, 4})}, {{"output_size", Ints{1, 2}}});
  EXPECT_EQ(y.shape(), (Shape{2, 2, 1, 2}));
  EXPECT_THAT(y.values<float>(), ElementsAre(2.5, 4.5, 10.5, 12.5, 18.5, 20.5, 26.5, 28.5));
  EXPECT_EQ(ops_.Run("adaptive_avg_pool3d", {Iota({1, 1, 2, 2, 2})}, {{"output_size", Ints{1, 1, 1}}}).At(0), 3.5);
}

TEST_F(AdaptiveAvgPoolTest, Errors) {
  EXPECT_EQ(ops_.Infer("adaptive_avg_pool2d", {F32({0, 3, 7, 7})}, {{"output_size", Ints{2, 3}}}), "f32[0,3,2,3]");
  EXPECT_THAT(ops_.Infer("adaptive_avg_pool2d", {F32({1, 3, 7})}, {{"output_size", Ints{1, 1}}}),
              HasSubstr("rank 3, wanted 4"));
  EXPECT_THAT(ops_.Infer("adaptive_avg_pool2d", {F32({1, 3, 7, 0})}, {{"output_size", Ints{1, 1}}}),
              HasSubstr("nothing on axis 3"));
  EXPECT_THAT(ops_.Infer("adaptive_avg_pool2d", {F32({1, 3, 7, 7})}, {{"output_size", Ints{1}}}),
              HasSubstr("output_size"));
  EXPECT_THAT(ops_.Infer("adaptive_avg_pool1d", {F32({1, 3, 7})}, {{"output_size", Ints{0}}}),
              HasSubstr("output_size"));
}

// torch.adaptive_avg_pool1d is a function of PyTorch's; the others are in torch.nn.functional alone.
TEST(AdaptiveAvgPool, Spellings) {
  ir::OpRegistry ops;
  Register(ops);
  EXPECT_NE(ops.FindOrNull("torch.adaptive_avg_pool1d"), nullptr);
  EXPECT_EQ(ops.FindOrNull("torch.adaptive_avg_pool2d"), nullptr);
  EXPECT_NE(ops.FindOrNull("torch.nn.functional.adaptive_avg_pool2d"), nullptr);
}

}  // namespace
}  // namespace fuselage::ops::adaptive_avg_pool
