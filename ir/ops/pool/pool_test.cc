#include "ir/ops/pool/pool.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::pool {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ints = std::vector<int64_t>;

TensorType F32(Shape shape) { return {DType::kF32, std::move(shape), std::nullopt, Layout::kRowMajor}; }

AttributeMap Pool(Ints kernel, Ints stride, AttributeMap more = {}) {
  more.emplace("kernel_size", std::move(kernel));
  more.emplace("stride", std::move(stride));
  return more;
}

class PoolTest : public ::testing::Test {
 protected:
  const OpTester ops_{Register};
};

TEST_F(PoolTest, MaxOfWindows) {
  const Tensor x = Iota({1, 1, 4, 4}, 1);
  EXPECT_THAT(ops_.Run("max_pool2d", {x}, Pool({2, 2}, {2, 2})).values<float>(), ElementsAre(6, 8, 14, 16));
  EXPECT_THAT(ops_.Run("max_pool2d", {x}, Pool({3, 3}, {2, 2}, {{"padding", Ints{1, 1, 1, 1}}})).values<float>(),
              ElementsAre(6, 8, 14, 16));
  EXPECT_THAT(ops_.Run("max_pool2d", {x}, Pool({2, 2}, {1, 1}, {{"dilation", Ints{2, 2}}})).values<float>(),
              ElementsAre(11, 12, 15, 16));
  EXPECT_THAT(ops_.Run("max_pool2d", {x}, Pool({3, 3}, {2, 2}, {{"ceil_mode", true}})).values<float>(),
              ElementsAre(11, 12, 15, 16));
  EXPECT_THAT(ops_.Run("max_pool1d", {Iota({1, 2, 3})}, Pool({2}, {1})).values<float>(), ElementsAre(1, 2, 4, 5));
  EXPECT_EQ(ops_.Run("max_pool3d", {Iota({1, 1, 3, 4, 5})}, Pool({2, 2, 2}, {1, 2, 3})).shape(),
            (Shape{1, 1, 2, 2, 2}));
}

TEST_F(PoolTest, MaxIgnoresPadding) {
  const Tensor x = Tensor::Of<float>({1, 1, 2}, {-5, -7});
  EXPECT_THAT(ops_.Run("max_pool1d", {x}, Pool({2}, {1}, {{"padding", Ints{1, 1}}})).values<float>(),
              ElementsAre(-5, -5, -7));
  // Taps 3 apart step over an input of 2.
  EXPECT_EQ(ops_.Run("max_pool1d", {x}, Pool({2}, {1}, {{"padding", Ints{1, 1}}, {"dilation", Ints{3}}})).At(0),
            -std::numeric_limits<double>::infinity());
  const Tensor nan = Tensor::Of<float>({1, 1, 2}, {std::nanf(""), 1});
  EXPECT_TRUE(std::isnan(ops_.Run("max_pool1d", {nan}, Pool({2}, {1})).At(0)));
}

TEST_F(PoolTest, MaxOfCodesKeepsTheirParameters) {
  Tensor x = Tensor::Of<int8_t>({1, 1, 3}, {-128, -100, -120});
  x.set_type({DType::kI8, x.shape(), PerTensor(0.5f, -3), Layout::kRowMajor});
  const Tensor y = ops_.Run("max_pool1d", {x}, Pool({2}, {2}, {{"padding", Ints{1, 0}}}));
  EXPECT_EQ(y.type().quant, x.type().quant);
  EXPECT_THAT(y.values<int8_t>(), ElementsAre(-128, -100));
  const TensorType per_axis{DType::kI8, {1, 2, 3}, PerAxis(1, {1.0f, 2.0f}), Layout::kRowMajor};
  EXPECT_THAT(ops_.Infer("max_pool1d", {per_axis}, Pool({2}, {2})), HasSubstr("one scale for the whole tensor"));
}

TEST_F(PoolTest, MaximaAndTheirPlaces) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = Tensor::Of<float>({1, 2, 2, 3}, {1, 5, 5, 2, 0, 3, -1, -2, -3, -4, nan, -6});
  const auto found = *ops_.RunAll("max_pool2d_with_indices", {x}, Pool({2, 2}, {1, 1}));
  EXPECT_THAT(found[0].values<float>(), ElementsAre(5, 5, ::testing::IsNan(), ::testing::IsNan()));
  EXPECT_THAT(found[1].values<int64_t>(), ElementsAre(1, 1, 4, 4));
  const auto padded = *ops_.RunAll("max_pool1d_with_indices", {Iota({1, 1, 2}, -2)},
                                   Pool({2}, {1}, {{"padding", Ints{1, 2}}, {"dilation", Ints{3}}}));
  EXPECT_THAT(padded[1].values<int64_t>(), ElementsAre(0, 0));  // Taps -1 and 2, then 0 and 3: no element, then one.
  EXPECT_EQ(padded[0].At(0), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(padded[0].At(1), -2);
  EXPECT_EQ(ops_.Infer("max_pool3d_with_indices", {F32({1, 2, 3, 4, 5})}, Pool({2, 2, 2}, {1, 1, 1})),
            "(f32[1,2,2,3,4], i64[1,2,2,3,4])");
}

TEST_F(PoolTest, MeanOfWindows) {
  const Tensor x = Iota({1, 1, 4, 4}, 1);
  EXPECT_THAT(ops_.Run("avg_pool2d", {x}, Pool({2, 2}, {2, 2})).values<float>(), ElementsAre(3.5, 5.5, 11.5, 13.5));
  // onnx test_averagepool_2d_ceil.
  EXPECT_THAT(ops_.Run("avg_pool2d", {x}, Pool({3, 3}, {2, 2}, {{"ceil_mode", true}})).values<float>(),
              ElementsAre(6, 7.5, 12, 13.5));
  const Tensor row = Tensor::Of<float>({1, 1, 3}, {2, 4, 6});
  EXPECT_THAT(ops_.Run("avg_pool1d", {row}, Pool({2}, {1}, {{"padding", Ints{1, 1}}})).values<float>(),
              ElementsAre(2, 3, 5, 6));
  EXPECT_THAT(ops_.Run("avg_pool1d", {row}, Pool({2}, {1}, {{"padding", Ints{1, 1}}, {"count_include_pad", true}}))
                  .values<float>(),
              ElementsAre(1, 3, 5, 3));
  // The last window covers one element, one of padding and one beyond it: the divisor is 2, as in PyTorch.
  EXPECT_THAT(ops_.Run("avg_pool1d", {row},
                       Pool({3}, {2}, {{"padding", Ints{0, 1}}, {"ceil_mode", true}, {"count_include_pad", true}}))
                  .values<float>(),
              ElementsAre(4, 3));
  EXPECT_EQ(ops_.Run("avg_pool3d", {Iota({1, 1, 2, 2, 2})}, Pool({2, 2, 2}, {1, 1, 1})).At(0), 3.5);
}

TEST_F(PoolTest, CeilModeDropsWindowsThatStartInThePadding) {
  EXPECT_EQ(ops_.Infer("max_pool1d", {F32({1, 1, 3})}, Pool({2}, {2}, {{"padding", Ints{1, 1}}, {"ceil_mode", true}})),
            "f32[1,1,2]");
  EXPECT_EQ(ops_.Infer("max_pool2d", {F32({1, 64, 112, 112})}, Pool({3, 3}, {2, 2}, {{"padding", Ints{1, 1, 1, 1}}})),
            "f32[1,64,56,56]");
}

TEST_F(PoolTest, Errors) {
  const TensorType x = F32({1, 1, 4, 4});
  EXPECT_THAT(ops_.Infer("max_pool2d", {F32({1, 4, 4})}, Pool({2, 2}, {1, 1})), HasSubstr("rank 3, wanted 4"));
  EXPECT_THAT(ops_.Infer("max_pool2d", {x}, {{"kernel_size", Ints{2, 2}}}), HasSubstr("attribute stride is missing"));
  EXPECT_THAT(ops_.Infer("max_pool2d", {x}, Pool({2}, {1, 1})), HasSubstr("kernel_size=[2]: wanted 2 values"));
  EXPECT_THAT(ops_.Infer("avg_pool2d", {x}, Pool({5, 2}, {1, 1})), HasSubstr("the kernel spans 5 elements"));
  EXPECT_THAT(ops_.Infer("avg_pool2d", {x}, Pool({2, 2}, {0, 1})), HasSubstr("stride=[0, 1]"));
  EXPECT_THAT(ops_.Infer("max_pool2d", {x}, Pool({2, 2}, {1, 1}, {{"padding", Ints{0, 2, 0, 0}}})),
              HasSubstr("padding=[0, 2, 0, 0]: wanted less than 2"));
  EXPECT_THAT(ops_.Infer("avg_pool2d", {x}, Pool({2, 2}, {1, 1}, {{"dilation", Ints{1, 1}}})),
              HasSubstr("has no attribute 'dilation'"));
  const TensorType codes{DType::kU8, {1, 1, 4, 4}, PerTensor(0.5f), Layout::kRowMajor};
  EXPECT_THAT(ops_.Infer("avg_pool2d", {codes}, Pool({2, 2}, {1, 1})), HasSubstr("wanted f16, f32 or f64"));
}

}  // namespace
}  // namespace fuselage::ops::pool
