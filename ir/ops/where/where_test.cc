#include "ir/ops/where/where.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::where {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TensorType Of(DType dtype, Shape shape) { return {dtype, std::move(shape), std::nullopt, Layout::kRowMajor}; }

TEST(Where, BroadcastsAllThree) {
  const OpTester ops(Register);
  const Tensor condition = Tensor::Of<bool>({2, 1}, {true, false});
  const Tensor x = Tensor::Of<float>({3}, {1, 2, 3}), y = Tensor::Scalar(-1.0f);
  const Tensor z = ops.Run("where", {condition, x, y});
  EXPECT_EQ(z.shape(), (Shape{2, 3}));
  EXPECT_THAT(z.values<float>(), ElementsAre(1, 2, 3, -1, -1, -1));
  EXPECT_EQ(ops.Run("where", {condition, Iota({2, 0}), y}).num_elements(), 0);
}

TEST(Where, KeepsAllBits) {
  const OpTester ops(Register);
  const int64_t big = (int64_t{1} << 62) + 1;
  const Tensor x = Tensor::Of<int64_t>({2}, {big, 1}), y = Tensor::Of<int64_t>({2}, {2, -big});
  EXPECT_THAT(ops.Run("where", {Tensor::Of<bool>({2}, {true, false}), x, y}).values<int64_t>(), ElementsAre(big, -big));
}

TEST(Where, Errors) {
  const OpTester ops(Register);
  const TensorType f32 = Of(DType::kF32, {2});
  EXPECT_THAT(ops.Infer("where", {f32, f32, f32}), HasSubstr("condition f32[2]: wanted element type bool"));
  EXPECT_THAT(ops.Infer("where", {Of(DType::kBool, {2}), f32, Of(DType::kF64, {2})}), HasSubstr("other f64[2]"));
  EXPECT_THAT(ops.Infer("where", {Of(DType::kBool, {3}), f32, f32}), HasSubstr("do not broadcast"));
}

}  // namespace
}  // namespace fuselage::ops::where
