#include "ir/ops/view/view.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::view {
namespace {

using ::testing::HasSubstr;
using Ints = std::vector<int64_t>;

TensorType F32(Shape shape) { return {DType::kF32, std::move(shape), std::nullopt, Layout::kRowMajor}; }

class ViewTest : public ::testing::Test {
 protected:
  const OpTester ops_{Register};
};

TEST_F(ViewTest, Flatten) {
  EXPECT_EQ(ops_.Infer("flatten", {F32({2, 3, 4, 5})}), "f32[2,60]");
  EXPECT_EQ(ops_.Infer("flatten", {F32({2, 3, 4, 5})}, {{"start_dim", 0}, {"end_dim", -2}}), "f32[24,5]");
  EXPECT_EQ(ops_.Infer("flatten", {F32({2, 3})}, {{"start_dim", 1}, {"end_dim", 1}}), "f32[2,3]");
  EXPECT_EQ(ops_.Infer("flatten", {F32({})}, {{"start_dim", 0}}), "f32[1]");
  EXPECT_EQ(ops_.Infer("flatten", {F32({2, 0, 3})}), "f32[2,0]");
  EXPECT_THAT(ops_.Infer("flatten", {F32({2})}), HasSubstr("start_dim: axis 1 not in [-1, 1)"));
  EXPECT_THAT(ops_.Infer("flatten", {F32({2, 3, 4})}, {{"start_dim", 2}, {"end_dim", 1}}),
              HasSubstr("start_dim=2: wanted not behind end_dim=1"));
}

TEST_F(ViewTest, Reshape) {
  const TensorType x = F32({2, 3, 4});
  EXPECT_EQ(ops_.Infer("reshape", {x}, {{"shape", Ints{4, -1}}}), "f32[4,6]");
  EXPECT_EQ(ops_.Infer("reshape", {x}, {{"shape", Ints{0, 12}}}), "f32[2,12]");
  EXPECT_EQ(ops_.Infer("reshape", {x}, {{"shape", Ints{0, 0, -1}}}), "f32[2,3,4]");
  EXPECT_EQ(ops_.Infer("reshape", {F32({1})}, {{"shape", Ints{}}}), "f32[]");
  EXPECT_EQ(ops_.Infer("reshape", {F32({0, 3})}, {{"shape", Ints{3, 0}}, {"allow_zero", true}}), "f32[3,0]");
  EXPECT_THAT(ops_.Infer("reshape", {F32({0, 3})}, {{"shape", Ints{0, -1}}, {"allow_zero", true}}),
              HasSubstr("known dimensions that divide"));
  EXPECT_THAT(ops_.Infer("reshape", {x}, {{"shape", Ints{5, 5}}}), HasSubstr("the input [2,3,4]: 24, found 25"));
  EXPECT_THAT(ops_.Infer("reshape", {x}, {{"shape", Ints{5, -1}}}), HasSubstr("divide the input's 24 elements"));
  EXPECT_THAT(ops_.Infer("reshape", {x}, {{"shape", Ints{-1, -1}}}), HasSubstr("at most one -1"));
  EXPECT_THAT(ops_.Infer("reshape", {x}, {{"shape", Ints{-2, 12}}}), HasSubstr("dimensions >= -1"));
  EXPECT_THAT(ops_.Infer("reshape", {x}, {{"shape", Ints{1, 2, 3, 0}}}), HasSubstr("no 0 at 3"));
  EXPECT_THAT(ops_.Infer("reshape", {x}, {{"shape", Ints{int64_t{1} << 40, int64_t{1} << 40}}}),
              HasSubstr("overflows"));
  EXPECT_EQ(ops_.registry().FindOrNull("view")->name, "reshape");
}

TEST_F(ViewTest, SqueezeAndUnsqueeze) {
  EXPECT_EQ(ops_.Infer("squeeze", {F32({1, 2, 1, 3})}), "f32[2,3]");
  EXPECT_EQ(ops_.Infer("squeeze", {F32({1, 2, 1, 3})}, {{"dims", Ints{-2}}}), "f32[1,2,3]");
  EXPECT_THAT(ops_.Infer("squeeze", {F32({1, 2})}, {{"dims", Ints{1}}}), HasSubstr("found 2 on axis 1"));
  EXPECT_EQ(ops_.Infer("unsqueeze", {F32({2, 3})}, {{"dims", Ints{0, -1}}}), "f32[1,2,3,1]");
  EXPECT_EQ(ops_.Infer("unsqueeze", {F32({})}, {{"dims", Ints{0}}}), "f32[1]");
  EXPECT_THAT(ops_.Infer("unsqueeze", {F32({2})}, {{"dims", Ints{2, 2}}}), HasSubstr("each axis once"));
  EXPECT_THAT(ops_.Infer("unsqueeze", {F32({2})}, {{"dims", Ints{2}}}), HasSubstr("axis 2 not in [-2, 2)"));
}

TEST_F(ViewTest, DataStays) {
  const Tensor x = Tensor::Of<int64_t>({2, 2}, {1, (int64_t{1} << 62) + 1, 3, 4});
  const Tensor y = ops_.Run("reshape", {x}, {{"shape", Ints{4}}});
  EXPECT_THAT(y.values<int64_t>(), ::testing::ElementsAre(1, (int64_t{1} << 62) + 1, 3, 4));
}

TEST_F(ViewTest, QuantizationParametersMoveAlong) {
  const TensorType per_tensor{DType::kU8, {2, 3}, PerTensor(0.5f, 3), Layout::kRowMajor};
  EXPECT_EQ(ops_.Infer("reshape", {per_tensor}, {{"shape", Ints{6}}}), "u8[6]<scale=0.5, zp=3>");
  const TensorType per_axis{DType::kI8, {2, 1, 3}, PerAxis(0, {0.5f, 0.25f}), Layout::kRowMajor};
  EXPECT_EQ(ops_.Infer("flatten", {per_axis}), "i8[2,3]<axis=0, scale=[0.5, 0.25]>");
  EXPECT_EQ(ops_.Infer("unsqueeze", {per_axis}, {{"dims", Ints{0}}}), "i8[1,2,1,3]<axis=1, scale=[0.5, 0.25]>");
  EXPECT_THAT(ops_.Infer("reshape", {per_axis}, {{"shape", Ints{3, 2}}}), HasSubstr("loses the quantization axis 0"));
  const TensorType one{DType::kI8, {1, 3}, PerAxis(0, {0.5f}), Layout::kRowMajor};
  EXPECT_EQ(ops_.Infer("squeeze", {one}), "i8[3]<scale=0.5>");
}

}  // namespace
}  // namespace fuselage::ops::view
