#include "ir/ops/conv_transpose/conv_transpose.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::conv_transpose {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ints = std::vector<int64_t>;

TensorType F32(Shape shape) { return {DType::kF32, std::move(shape), std::nullopt, Layout::kRowMajor}; }

class ConvTransposeTest : public ::testing::Test {
 protected:
  const OpTester ops_{Register};
};

TEST_F(ConvTransposeTest, OneDimension) {
  const Tensor x = Tensor::Of<float>({1, 1, 3}, {1, 2, 3}), w = Tensor::Of<float>({1, 1, 3}, {1, 10, 100});
  EXPECT_THAT(ops_.Run("conv_transpose1d", {x, w}).values<float>(), ElementsAre(1, 12, 123, 230, 300));
  EXPECT_THAT(ops_.Run("conv_transpose1d", {x, w}, {{"stride", Ints{2}}}).values<float>(),
              ElementsAre(1, 10, 102, 20, 203, 30, 300));
  EXPECT_THAT(ops_.Run("conv_transpose1d", {x, w}, {{"stride", Ints{2}}, {"padding", Ints{1, 2}}}).values<float>(),
              ElementsAre(10, 102, 20, 203));
  EXPECT_THAT(ops_.Run("conv_transpose1d", {x, w}, {{"stride", Ints{2}}, {"output_padding", Ints{1}}}).values<float>(),
              ElementsAre(1, 10, 102, 20, 203, 30, 300, 0));
  EXPECT_THAT(ops_.Run("conv_transpose1d", {x, w}, {{"dilation", Ints{2}}}).values<float>(),
              ElementsAre(1, 2, 13, 20, 130, 200, 300));
}

TEST_F(ConvTransposeTest, GroupsBiasAndTwoDimensions) {
  const Tensor x = Tensor::Of<float>({1, 2, 1, 1}, {2, 3});
  const Tensor w = Tensor::Of<float>({2, 1, 1, 2}, {1, 2, 3, 4});
  const Tensor b = Tensor::Of<float>({2}, {100, 200});
  const Tensor y = ops_.Run("conv_transpose2d", {x, w, b}, {{"groups", 2}});
  EXPECT_EQ(y.shape(), (Shape{1, 2, 1, 2}));
  EXPECT_THAT(y.values<float>(), ElementsAre(102, 104, 209, 212));
  // One group: channels sum.
  const Tensor one = ops_.Run("conv_transpose2d", {x, w});
  EXPECT_THAT(one.values<float>(), ElementsAre(11, 16));
}

TEST_F(ConvTransposeTest, ThreeDimensions) {
  const Tensor y = ops_.Run("conv_transpose3d", {Tensor::Of<float>({1, 1, 1, 1, 2}, {1, 2}), Iota({1, 1, 2, 1, 2}, 1)});
  EXPECT_EQ(y.shape(), (Shape{1, 1, 2, 1, 3}));
  EXPECT_THAT(y.values<float>(), ElementsAre(1, 4, 4, 3, 10, 8));
}

TEST_F(ConvTransposeTest, Errors) {
  const auto error = [&](const TensorType& x, const TensorType& w, const AttributeMap& attributes = {}) {
    return ops_.Infer("conv_transpose2d", {x, w}, attributes);
  };
  EXPECT_EQ(error(F32({1, 4, 8, 8}), F32({4, 6, 3, 3})), "f32[1,6,10,10]");
  EXPECT_THAT(error(F32({1, 3, 8, 8}), F32({4, 6, 3, 3})), HasSubstr("3 channels, wanted 4"));
  EXPECT_THAT(error(F32({1, 4, 8, 8}), F32({4, 6, 3, 3}), {{"groups", 3}}), HasSubstr("a multiple of groups=3"));
  EXPECT_THAT(error(F32({1, 4, 1, 1}), F32({4, 6, 3, 3}), {{"padding", Ints{2, 0, 1, 0}}}),
              HasSubstr("a result of size 0, wanted at least 1: padding 2 + 1 is too large"));
  EXPECT_THAT(error(F32({1, 4, 8, 8}), F32({4, 6, 3, 3}), {{"output_padding", Ints{0, 1}}}),
              HasSubstr("output_padding=[0, 1]: wanted less than stride or dilation on spatial axis 1"));
  EXPECT_THAT(error(F32({1, 4, 8}), F32({4, 6, 3, 3})), HasSubstr("rank 3, wanted 4"));
  EXPECT_THAT(ops_.Infer("conv_transpose2d", {F32({1, 4, 8, 8}), F32({4, 6, 3, 3}), F32({4})}),
              HasSubstr("bias f32[4]: wanted shape [6]"));
}

}  // namespace
}  // namespace fuselage::ops::conv_transpose
