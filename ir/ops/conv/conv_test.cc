#include "ir/ops/conv/conv.h"

#include <tuple>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::conv {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ints = std::vector<int64_t>;

TensorType F32(Shape shape) { return {DType::kF32, std::move(shape), std::nullopt, Layout::kRowMajor}; }

class ConvTest : public ::testing::Test {
 protected:
  const OpTester ops_{Register};
};

// The definition, one output at a time.
std::vector<double> Direct2d(const Tensor& x, const Tensor& w, const Ints& stride, const Ints& padding,
                             const Ints& dilation, int64_t groups, const Shape& result) {
  std::vector<double> y;
  const int64_t oc_per_group = w.dim(0) / groups;
  for (int64_t n = 0; n < result[0]; ++n) {
    for (int64_t oc = 0; oc < result[1]; ++oc) {
      for (int64_t oh = 0; oh < result[2]; ++oh) {
        for (int64_t ow = 0; ow < result[3]; ++ow) {
          double sum = 0;
          for (int64_t ic = 0; ic < w.dim(1); ++ic) {
            for (int64_t i = 0; i < w.dim(2); ++i) {
              for (int64_t j = 0; j < w.dim(3); ++j) {
                const int64_t h = oh * stride[0] - padding[0] + i * dilation[0];
                const int64_t v = ow * stride[1] - padding[1] + j * dilation[1];
                if (h < 0 || h >= x.dim(2) || v < 0 || v >= x.dim(3)) continue;
                const int64_t c = oc / oc_per_group * w.dim(1) + ic;
                sum += x.At(((n * x.dim(1) + c) * x.dim(2) + h) * x.dim(3) + v) *
                       w.At(((oc * w.dim(1) + ic) * w.dim(2) + i) * w.dim(3) + j);
              }
            }
          }
          y.push_back(sum);
        }
      }
    }
  }
  return y;
}

struct Case {
  Shape input, weight;
  Ints stride, padding, dilation;
  int64_t groups;
};

TEST_F(ConvTest, AgreesWithTheDefinition) {
  const Case cases[] = {
      {{1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1},
      {{2, 3, 7, 5}, {4, 3, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1},
      {{1, 3, 17, 13}, {5, 3, 7, 7}, {2, 2}, {3, 3, 3, 3}, {1, 1}, 1},
      {{1, 4, 9, 11}, {6, 2, 3, 2}, {2, 1}, {0, 1, 2, 3}, {2, 3}, 2},
      {{2, 6, 8, 8}, {6, 1, 3, 3}, {1, 2}, {1, 1, 1, 1}, {1, 1}, 6},      // depthwise
      {{1, 20, 12, 12}, {3, 20, 2, 2}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1},  // several blocks of taps
      {{1, 2, 2, 2}, {3, 2, 1, 1}, {5, 5}, {4, 0, 0, 4}, {1, 1}, 1},      // windows in the padding
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(ToString(c.input) + " * " + ToString(c.weight));
    const Tensor x = SeededTensor(F32(c.input), 1), w = SeededTensor(F32(c.weight), 2);
    const Tensor y =
        ops_.Run("conv2d", {x, w},
                 {{"stride", c.stride}, {"padding", c.padding}, {"dilation", c.dilation}, {"groups", c.groups}});
    const std::vector<double> wanted = Direct2d(x, w, c.stride, c.padding, c.dilation, c.groups, y.shape());
    for (int64_t i = 0; i < y.num_elements(); ++i) EXPECT_NEAR(y.At(i), wanted[i], 1e-6 * (1 + std::abs(wanted[i])));
  }
}

TEST_F(ConvTest, OneAndThreeDimensions) {
  const Tensor y = ops_.Run("conv1d", {Iota({1, 1, 5}), Tensor::Of<float>({1, 1, 2}, {1, 10})},
                            {{"stride", Ints{2}}, {"padding", Ints{1, 0}}});
  EXPECT_THAT(y.values<float>(), ElementsAre(0, 21, 43));
  const Tensor z = ops_.Run("conv3d", {Iota({1, 1, 2, 2, 3}), Tensor::Of<float>({1, 1, 2, 1, 2}, {1, 2, 3, 4})});
  EXPECT_EQ(z.shape(), (Shape{1, 1, 1, 2, 2}));
  EXPECT_THAT(z.values<float>(), ElementsAre(0 + 2 + 18 + 28, 1 + 4 + 21 + 32, 3 + 8 + 27 + 40, 4 + 10 + 30 + 44));
}

TEST_F(ConvTest, BiasResidualAndActivation) {
  const Tensor x = Tensor::Of<float>({1, 1, 1, 2}, {1, -2});
  const Tensor w = Tensor::Of<float>({2, 1, 1, 1}, {1, 2});
  const Tensor b = Tensor::Of<float>({2}, {10, -10});
  const Tensor r = Tensor::Of<float>({1, 2, 1, 2}, {1, 1, 9, 9});
  EXPECT_THAT(ops_.Run("conv2d", {x, w, b}).values<float>(), ElementsAre(11, 8, -8, -14));
  EXPECT_THAT(ops_.Run("conv2d", {x, w, b, r}).values<float>(), ElementsAre(12, 9, 1, -5));
  EXPECT_THAT(ops_.Run("conv2d", {x, w, b, r}, {{"activation", "relu"}}).values<float>(), ElementsAre(12, 9, 1, 0));
  EXPECT_THAT(ops_.Run("conv2d", {x, w, std::nullopt, r}).values<float>(), ElementsAre(2, -1, 11, 5));
}

TEST_F(ConvTest, QuantizedParametersMeanTheirRealValues) {
  Tensor w = Tensor::Of<int8_t>({2, 1, 1, 1}, {10, -4});
  w.set_type({DType::kI8, w.shape(), PerAxis(0, {0.5f, 0.25f}), Layout::kRowMajor});
  Tensor b = Tensor::Of<int32_t>({2}, {8, 100});
  b.set_type({DType::kI32, b.shape(), PerTensor(0.125f), Layout::kRowMajor});
  const Tensor x = Tensor::Of<float>({1, 1, 1, 1}, {2});
  EXPECT_THAT(ops_.Run("conv2d", {x, w, b}).values<float>(), ElementsAre(11, 10.5));
}

TEST_F(ConvTest, IntegersAreExact) {
  const Tensor x = Tensor::Of<int32_t>({1, 1, 1, 2}, {40000, 40001});
  const Tensor w = Tensor::Of<int32_t>({1, 1, 1, 1}, {40000});
  // Modulo 2^32.
  EXPECT_THAT(ops_.Run("conv2d", {x, w}).values<int32_t>(), ElementsAre(1600000000, 1600040000));
  const Tensor big = Tensor::Of<int64_t>({1, 1, 1}, {(int64_t{1} << 60) + 1});
  EXPECT_THAT(ops_.Run("conv1d", {big, Tensor::Of<int64_t>({1, 1, 1}, {3})}).values<int64_t>(),
              ElementsAre((int64_t{3} << 60) + 3));
}

TEST_F(ConvTest, CodesLessTheirZeroPoints) {
  const Tensor x = Tensor::Of<uint8_t>({1, 1, 2}, {255, 3}), w = Tensor::Of<int8_t>({2, 1, 2}, {1, 2, -128, 127});
  const Tensor x_zero = Tensor::Of<uint8_t>({1}, {3}), w_zero = Tensor::Of<int8_t>({2, 1, 1}, {0, -1});
  // 252 and 0, and 0 in the padding on both sides.
  EXPECT_THAT(
      ops_.Run("conv_integer1d", {x, w, x_zero, w_zero}, {{"padding", std::vector<int64_t>{1, 1}}}).values<int32_t>(),
      ElementsAre(504, 252, 0, 252 * 128, 252 * -127, 0));
  EXPECT_THAT(ops_.Run("conv_integer1d", {x, w}).values<int32_t>(), ElementsAre(261, 255 * -128 + 3 * 127));
  const TensorType codes{DType::kU8, {1, 1, 2}, std::nullopt, Layout::kRowMajor};
  const TensorType floats{DType::kF32, {1, 1, 2}, std::nullopt, Layout::kRowMajor};
  EXPECT_THAT(ops_.Infer("conv_integer1d", {floats, codes}), HasSubstr("wanted u8 or i8"));
  EXPECT_THAT(ops_.Infer("conv_integer1d", {codes, codes, floats}), HasSubstr("wanted element type u8"));
  EXPECT_THAT(ops_.Infer("conv_integer1d", {codes, codes, {{DType::kU8, {3}, std::nullopt, Layout::kRowMajor}}}),
              HasSubstr("wanted what broadcasts to [1,1,2]"));
}

TEST_F(ConvTest, HalfAndDouble) {
  const Tensor x = Cast(Tensor::Of<float>({1, 1, 2}, {1.5, 2}), DType::kF16);
  EXPECT_EQ(ToDoubles(ops_.Run("conv1d", {x, Cast(Tensor::Of<float>({1, 1, 1}, {2}), DType::kF16)})),
            (std::vector<double>{3, 4}));
  const double third = 1.0 / 3;
  EXPECT_EQ(ops_.Run("conv1d", {Tensor::Of<double>({1, 1, 1}, {third}), Tensor::Of<double>({1, 1, 1}, {1})}).At(0),
            third);
}

TEST_F(ConvTest, Errors) {
  const auto error = [&](std::vector<std::optional<TensorType>> operands, const AttributeMap& attributes = {}) {
    return ops_.Infer("conv2d", operands, attributes);
  };
  const TensorType x = F32({1, 4, 8, 8}), w = F32({6, 4, 3, 3});
  EXPECT_EQ(error({x, w}), "f32[1,6,6,6]");
  EXPECT_EQ(error({F32({0, 4, 8, 8}), w}), "f32[0,6,6,6]");
  EXPECT_THAT(error({F32({4, 8, 8}), w}), HasSubstr("input f32[4,8,8]: rank 3, wanted 4"));
  EXPECT_THAT(error({x, F32({6, 4, 3})}), HasSubstr("weight f32[6,4,3]: rank 3, wanted 4"));
  EXPECT_THAT(error({x, F32({6, 3, 3, 3})}), HasSubstr("4 channels, wanted 3 (weight [6,3,3,3]) times groups=1"));
  EXPECT_THAT(error({x, w}, {{"groups", 0}}), HasSubstr("groups=0: wanted at least 1"));
  EXPECT_THAT(error({x, F32({5, 2, 3, 3})}, {{"groups", 2}}),
              HasSubstr("5 output channels, wanted a multiple of groups=2"));
  EXPECT_THAT(error({x, w}, {{"stride", Ints{1}}}), HasSubstr("stride=[1]: wanted 2 values in [1, 2^31)"));
  EXPECT_THAT(error({x, w}, {{"stride", Ints{1, 0}}}), HasSubstr("stride=[1, 0]"));
  EXPECT_THAT(error({x, w}, {{"padding", Ints{0, 0}}}), HasSubstr("padding=[0, 0]: wanted 4 values"));
  EXPECT_THAT(error({x, w}, {{"padding", Ints{0, -1, 0, 0}}}), HasSubstr("padding=[0, -1, 0, 0]"));
  EXPECT_THAT(error({x, w}, {{"dilation", Ints{1, int64_t{1} << 40}}}), HasSubstr("dilation"));
  EXPECT_THAT(error({x, F32({6, 4, 9, 3})}), HasSubstr("the kernel spans 9 elements, more than the padded input's 8"));
  EXPECT_THAT(error({x, F32({6, 4, 0, 3})}), HasSubstr("kernel of size 0"));
  EXPECT_THAT(error({x, w, F32({5})}), HasSubstr("bias f32[5]: wanted shape [6]"));
  EXPECT_THAT(error({x, w, std::nullopt, F32({1, 6, 8, 8})}),
              HasSubstr("residual f32[1,6,8,8]: wanted shape [1,6,6,6]"));
  EXPECT_THAT(error({x, w}, {{"activation", "elu"}}), HasSubstr("wanted one of \"none\", \"relu\""));
  EXPECT_THAT(error({x, {{DType::kF16, {6, 4, 3, 3}, std::nullopt, Layout::kRowMajor}}}),
              HasSubstr("weight f16[6,4,3,3]: wanted element type f32"));
  EXPECT_THAT(error({{{DType::kU8, {1, 4, 8, 8}, PerTensor(0.5f), Layout::kRowMajor}}, w}),
              HasSubstr("dequantize them first"));
  EXPECT_THAT(error({F32({1, int64_t{1} << 40, 1, 1}), F32({1 << 30, 1 << 10, 1, 1})}, {{"groups", 1 << 30}}),
              HasSubstr("f32[1,1073741824,1,1]"));
  EXPECT_THAT(error({F32({int64_t{1} << 40, 4, 8, 8}), F32({1 << 30, 4, 3, 3})}), HasSubstr("overflows 64 bits"));
}

TEST_F(ConvTest, Aliases) {
  EXPECT_EQ(ops_.registry().FindOrNull("torch.nn.functional.conv2d")->name, "conv2d");
  EXPECT_TRUE(ops_.registry().FindOrNull("conv2d")->module_form);
}

}  // namespace
}  // namespace fuselage::ops::conv
