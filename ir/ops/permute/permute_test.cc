#include "ir/ops/permute/permute.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::permute {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ints = std::vector<int64_t>;

class PermuteTest : public ::testing::Test {
 protected:
  const OpTester ops_{Register};
};

TEST_F(PermuteTest, MovesElements) {
  const Tensor y = ops_.Run("permute", {Iota({1, 2, 3})}, {{"dims", Ints{2, 0, 1}}});
  EXPECT_EQ(y.shape(), (Shape{3, 1, 2}));
  EXPECT_THAT(y.values<float>(), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(ops_.Run("permute", {Tensor::Of<bool>({2, 2}, {true, true, false, true})}, {{"dims", Ints{-1, 0}}})
                  .values<bool>(),
              ElementsAre(true, false, true, true));
  EXPECT_EQ(ops_.Run("permute", {Tensor::Scalar(1.0f)}, {{"dims", Ints{}}}).At(0), 1);
}

TEST_F(PermuteTest, TransposeSwapsTwoAxes) {
  const Tensor x = Iota({2, 1, 3});
  const Tensor y = ops_.Run("transpose", {x}, {{"dim0", 0}, {"dim1", -1}});
  EXPECT_EQ(y.shape(), (Shape{3, 1, 2}));
  EXPECT_THAT(y.values<float>(), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_TRUE(ops_.Run("torch.transpose", {x}, {{"dim0", 1}, {"dim1", 1}}).SameBytes(x));
  const TensorType codes{DType::kI8, {2, 1, 3}, PerAxis(0, {0.5f, 0.25f}), Layout::kRowMajor};
  EXPECT_EQ(ops_.Infer("transpose", {codes}, {{"dim0", 2}, {"dim1", 0}}), "i8[3,1,2]<axis=2, scale=[0.5, 0.25]>");
  EXPECT_THAT(ops_.Infer("transpose", {codes}, {{"dim0", 3}, {"dim1", 0}}), HasSubstr("dim0: axis 3 not in [-3, 3)"));
  EXPECT_THAT(ops_.Infer("transpose", {codes}, {{"dim0", 0}}), HasSubstr("dim1 is missing"));
}

TEST_F(PermuteTest, QuantizationAxisMovesAlong) {
  const TensorType x{DType::kI8, {2, 3}, PerAxis(0, {0.5f, 0.25f}), Layout::kRowMajor};
  EXPECT_EQ(ops_.Infer("permute", {x}, {{"dims", Ints{1, 0}}}), "i8[3,2]<axis=1, scale=[0.5, 0.25]>");
  const TensorType u{DType::kU8, {2, 3}, PerTensor(0.5f), Layout::kRowMajor};
  EXPECT_EQ(ops_.Infer("permute", {u}, {{"dims", Ints{1, 0}}}), "u8[3,2]<scale=0.5>");
}

TEST_F(PermuteTest, Errors) {
  const TensorType x{DType::kF32, {2, 3}, std::nullopt, Layout::kRowMajor};
  EXPECT_THAT(ops_.Infer("permute", {x}, {{"dims", Ints{0}}}), HasSubstr("each of the 2 axes of f32[2,3]"));
  EXPECT_THAT(ops_.Infer("permute", {x}, {{"dims", Ints{0, 0}}}), HasSubstr("each axis once"));
  EXPECT_THAT(ops_.Infer("permute", {x}, {{"dims", Ints{0, 2}}}), HasSubstr("axis 2 not in"));
}

}  // namespace
}  // namespace fuselage::ops::permute
