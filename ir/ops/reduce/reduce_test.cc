#include "ir/ops/reduce/reduce.h"

#include <cmath>
#include <limits>

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

TEST_F(ReduceTest, Floats) {
  const Tensor x = Tensor::Of<float>({2, 3}, {1, -2, 3, 4, 5, -6});
  const AttributeMap rows = {{"dims", Ints{1}}};
  EXPECT_THAT(ops_.Run("sum", {x}, rows).values<float>(), ElementsAre(2, 3));
  EXPECT_THAT(ops_.Run("prod", {x}, rows).values<float>(), ElementsAre(-6, -120));
  EXPECT_THAT(ops_.Run("amax", {x}, rows).values<float>(), ElementsAre(3, 5));
  EXPECT_THAT(ops_.Run("amin", {x}, {{"dims", Ints{0}}}).values<float>(), ElementsAre(1, -2, -6));
  const Tensor y = Tensor::Of<float>({2}, {1000, 1000});
  EXPECT_FLOAT_EQ(ops_.Run("logsumexp", {y}).data<float>()[0], 1000 + std::log(2.0f));
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(ops_.Run("logsumexp", {Tensor::Of<float>({2}, {-infinity, -infinity})}).At(0), -infinity);
  for (const char* op : {"amax", "amin", "sum", "prod", "logsumexp"}) {
    EXPECT_TRUE(std::isnan(ops_.Run(op, {Tensor::Of<float>({3}, {1, NAN, 2})}).At(0))) << op;
  }
}

TEST_F(ReduceTest, IntegersAndBools) {
  const int64_t big = int64_t{1} << 62;
  const Tensor x = Tensor::Of<int64_t>({3}, {big + 1, big, -5});
  EXPECT_THAT(ops_.Run("amax", {x}).values<int64_t>(), ElementsAre(big + 1));
  EXPECT_THAT(ops_.Run("amin", {x}).values<int64_t>(), ElementsAre(-5));
  EXPECT_THAT(ops_.Run("sum", {x}).values<int64_t>(), ElementsAre(INT64_MAX - 3));
  EXPECT_THAT(ops_.Run("prod", {Tensor::Of<uint8_t>({2}, {16, 17})}).values<uint8_t>(), ElementsAre(16));
  EXPECT_THAT(ops_.Run("amax", {Tensor::Of<bool>({2}, {false, true})}).values<bool>(), ElementsAre(true));
}

TEST_F(ReduceTest, EmptySets) {
  EXPECT_THAT(ops_.Run("sum", {Iota({0})}).values<float>(), ElementsAre(0));
  EXPECT_THAT(ops_.Run("prod", {Iota({2, 0})}, {{"dims", Ints{1}}}).values<float>(), ElementsAre(1, 1));
  EXPECT_THAT(ops_.Infer("amax", {F32({2, 0})}, {{"dims", Ints{1}}}), HasSubstr("an empty set has no extremum"));
  EXPECT_EQ(ops_.Infer("amax", {F32({2, 0})}, {{"dims", Ints{0}}}), "f32[0]");
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
