#include "ir/ops/reduce/reduce.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::reduce {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ints = std::vector<int64_t>;

TensorType F32(Shape shape) { return {DType::kF32, std::move(shape), std::nullopt, Layout::kRowMajor}; }

class ReduceTest : public ::testing::Test {
 protected:
  const OpTester ops_{Register};
};

TEST_F(ReduceTest, Mean) {
  const Tensor x = Iota({2, 3, 2});  // 0 .. 11
  EXPECT_THAT(ops_.Run("mean", {x}, {{"dims", Ints{2}}}).values<float>(), ElementsAre(0.5, 2.5, 4.5, 6.5, 8.5, 10.5));
  EXPECT_THAT(ops_.Run("mean", {x}, {{"dims", Ints{0, -2}}}).values<float>(), ElementsAre(5, 6));
  EXPECT_EQ(ops_.Infer("mean", {x.type()}, {{"dims", Ints{0, -2}}}), "f32[2]");
  EXPECT_EQ(ops_.Infer("mean", {x.type()}, {{"dims", Ints{1}}, {"keepdim", true}}), "f32[2,1,2]");
  EXPECT_THAT(ops_.Run("mean", {x}).values<float>(), ElementsAre(5.5));
  EXPECT_EQ(ops_.Infer("mean", {x.type()}), "f32[]");
  EXPECT_EQ(ops_.Infer("mean", {x.type()}, {{"keepdim", true}}), "f32[1,1,1]");
  // An axis of size 1.
  EXPECT_THAT(ops_.Run("mean", {Iota({1, 2})}, {{"dims", Ints{0}}}).values<float>(), ElementsAre(0, 1));
}

TEST_F(ReduceTest, GlobalAvgPool) {
  const Tensor y = ops_.Run("global_avg_pool", {Iota({2, 1, 2, 3})});
  EXPECT_EQ(y.shape(), (Shape{2, 1, 1, 1}));
  EXPECT_THAT(y.values<float>(), ElementsAre(2.5, 8.5));
  EXPECT_EQ(ops_.Infer("global_avg_pool", {F32({2, 3, 5})}), "f32[2,3,1]");
}

TEST_F(ReduceTest, Errors) {
  EXPECT_THAT(ops_.Infer("mean", {F32({2, 3})}, {{"dims", Ints{2}}}), HasSubstr("dims: axis 2 not in [-2, 2)"));
  EXPECT_THAT(ops_.Infer("mean", {F32({2, 3})}, {{"dims", Ints{1, -1}}}), HasSubstr("each axis once, found -1 again"));
  EXPECT_THAT(ops_.Infer("global_avg_pool", {F32({2, 3})}), HasSubstr("rank 2, wanted at least 3"));
  EXPECT_THAT(ops_.Infer("mean", {{{DType::kI32, {2}, std::nullopt, Layout::kRowMajor}}}),
              HasSubstr("wanted f16, f32 or f64"));
}

}  // namespace
}  // namespace fuselage::ops::reduce
