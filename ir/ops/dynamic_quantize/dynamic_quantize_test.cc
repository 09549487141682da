#include "ir/ops/dynamic_quantize/dynamic_quantize.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::dynamic_quantize {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ints = std::vector<int64_t>;

TensorType F32(Shape shape) { return {DType::kF32, std::move(shape), std::nullopt, Layout::kRowMajor}; }

class DynamicQuantizeTest : public ::testing::Test {
 protected:
  std::vector<Tensor> Run(const char* op, const Tensor& x, Ints dims = {}) {
    auto results = ops_.RunAll(op, {x}, {{"dims", std::move(dims)}});
    EXPECT_TRUE(results.ok()) << results.status();
    return *std::move(results);
  }
  std::string Error(const char* op, const Tensor& x) { return std::string(ops_.RunAll(op, {x}).status().message()); }

  const OpTester ops_{Register};
};

TEST_F(DynamicQuantizeTest, Symmetric) {
  const auto q = Run("dynamic_quantize_symmetric", Tensor::Of<float>({5}, {-2, 1, 0.5, 0, 1.25}));
  EXPECT_EQ(q[1].data<float>()[0], 2.0f / 127);
  EXPECT_THAT(q[0].values<int8_t>(), ElementsAre(-127, 64, 32, 0, 79));  // 63.5 and 31.75, 79.375.
}

TEST_F(DynamicQuantizeTest, SymmetricRoundsHalfToEven) {
  const auto q = Run("dynamic_quantize_symmetric", Tensor::Of<float>({6}, {127, 0.5, 1.5, 2.5, -0.5, -2.5}));
  EXPECT_EQ(q[1].data<float>()[0], 1);
  EXPECT_THAT(q[0].values<int8_t>(), ElementsAre(127, 0, 2, 2, 0, -2));
}

TEST_F(DynamicQuantizeTest, OneScaleOverDims) {
  const Tensor x = Tensor::Of<float>({2, 3}, {127, -1, 2, 254, 12.7f, 0});
  auto q = Run("dynamic_quantize_symmetric", x, {1});
  EXPECT_EQ(q[1].shape(), (Shape{2, 1}));
  EXPECT_THAT(q[1].values<float>(), ElementsAre(1, 2));
  EXPECT_THAT(q[0].values<int8_t>(), ElementsAre(127, -1, 2, 127, 6, 0));
  q = Run("dynamic_quantize_symmetric", x, {-2});
  EXPECT_EQ(q[1].shape(), (Shape{1, 3}));
  EXPECT_THAT(q[1].values<float>(), ElementsAre(2, 12.7f / 127, 2.0f / 127));
  q = Run("dynamic_quantize_symmetric", x, {1, 0});
  EXPECT_EQ(q[1].shape(), (Shape{1, 1}));
  EXPECT_THAT(q[0].values<int8_t>(), ElementsAre(64, 0, 1, 127, 6, 0));
}

// Each value is within half a step of scale * (q - offset), in double.
TEST_F(DynamicQuantizeTest, ErrorIsBounded) {
  const Tensor x = SeededTensor(F32({4, 5, 6}), 3);
  for (const char* op : {"dynamic_quantize_symmetric", "dynamic_quantize_asymmetric"}) {
    const auto q = Run(op, x, {0, 2});
    EXPECT_EQ(q[1].shape(), (Shape{1, 5, 1}));
    for (int64_t i = 0; i < x.num_elements(); ++i) {
      const int64_t g = i / 6 % 5;
      const double scale = q[1].At(g), offset = q.size() > 2 ? q[2].At(g) : 0;
      EXPECT_LE(std::fabs(scale * (q[0].At(i) - offset) - x.At(i)), scale * 0.501) << op << " " << i;
    }
  }
}

TEST_F(DynamicQuantizeTest, AsymmetricIsOnnxDynamicQuantizeLinear) {
  // The example of ONNX's documentation.
  const Tensor x = Tensor::Of<float>({6}, {0, 2, -3, -2.5, 1.34f, 0.5});
  const auto q = Run("dynamic_quantize_asymmetric", x);
  EXPECT_THAT(q[0].values<uint8_t>(), ElementsAre(153, 255, 0, 26, 221, 179));
  EXPECT_EQ(q[1].shape(), Shape{});
  EXPECT_EQ(q[1].data<float>()[0], 5.0f / 255);
  EXPECT_EQ(q[2].data<uint8_t>()[0], 153);
  const auto linear = ops_.RunAll("dynamic_quantize_linear", {x});
  ASSERT_TRUE(linear.ok()) << linear.status();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE((*linear)[i].SameBytes(q[i])) << i;
}

TEST_F(DynamicQuantizeTest, AsymmetricRangeHoldsZero) {
  const auto positive = Run("dynamic_quantize_asymmetric", Tensor::Of<float>({2}, {1, 255}));
  EXPECT_THAT(positive[0].values<uint8_t>(), ElementsAre(1, 255));
  EXPECT_EQ(positive[2].At(0), 0);
  const auto rows = Run("dynamic_quantize_asymmetric", Tensor::Of<float>({2, 2}, {-255, -1, -100, 155}), {1});
  EXPECT_THAT(rows[0].values<uint8_t>(), ElementsAre(0, 254, 0, 255));
  EXPECT_THAT(rows[1].values<float>(), ElementsAre(1, 1));
  EXPECT_THAT(rows[2].values<uint8_t>(), ElementsAre(255, 100));
}

TEST_F(DynamicQuantizeTest, ZerosHaveScaleOne) {
  const float tiny = std::numeric_limits<float>::min();
  for (const char* op : {"dynamic_quantize_symmetric", "dynamic_quantize_asymmetric"}) {
    const auto q = Run(op, Tensor::Of<float>({3, 2}, {0, -0.0f, tiny, -tiny, 127, 0}), {1});
    EXPECT_EQ(q[1].At(0), 1);
    EXPECT_EQ(q[1].At(1), 1) << "the scale would not be normal";
    for (int i = 0; i < 4; ++i) EXPECT_EQ(q[0].At(i), 0) << op;
    EXPECT_EQ(Run(op, Tensor::Of<float>({0, 2}, {}))[1].At(0), 1);
    EXPECT_EQ(Run(op, Tensor::Of<float>({0, 2}, {}), {0})[1].shape(), (Shape{1, 2}));
  }
}

TEST_F(DynamicQuantizeTest, Types) {
  EXPECT_EQ(ops_.Infer("dynamic_quantize_symmetric", {F32({2, 3})}), "(i8[2,3], f32[])");
  EXPECT_EQ(ops_.Infer("dynamic_quantize_symmetric", {F32({2, 3})}, {{"dims", Ints{-1}}}), "(i8[2,3], f32[2,1])");
  EXPECT_EQ(ops_.Infer("dynamic_quantize_asymmetric", {F32({2, 3})}, {{"dims", Ints{0, 1}}}),
            "(u8[2,3], f32[1,1], u8[1,1])");
  EXPECT_EQ(ops_.Infer("dynamic_quantize_asymmetric", {F32({})}), "(u8[], f32[], u8[])");
}

TEST_F(DynamicQuantizeTest, Errors) {
  for (const char* op : {"dynamic_quantize_symmetric", "dynamic_quantize_asymmetric"}) {
    EXPECT_THAT(ops_.Infer(op, {F32({2, 3})}, {{"dims", Ints{1, -1}}}), HasSubstr("each axis once, found -1 again"));
    EXPECT_THAT(ops_.Infer(op, {F32({2, 3})}, {{"dims", Ints{2}}}), HasSubstr("dims: axis 2 not in [-2, 2)"));
    const TensorType codes{DType::kU8, {2}, PerTensor(1), Layout::kRowMajor};
    EXPECT_THAT(ops_.Infer(op, {codes}), HasSubstr("dequantize them first"));
    EXPECT_THAT(ops_.Infer(op, {{{DType::kF64, {2}, std::nullopt, Layout::kRowMajor}}}), HasSubstr("element type f32"));
    EXPECT_THAT(Error(op, Tensor::Scalar(std::nanf(""))), HasSubstr("input holds nan"));
    EXPECT_THAT(Error(op, Tensor::Scalar(-std::numeric_limits<float>::infinity())), HasSubstr("input holds -inf"));
  }
  const Tensor wide = Tensor::Of<float>({2}, {3e38f, -3e38f});
  EXPECT_THAT(Error("dynamic_quantize_asymmetric", wide), HasSubstr("[-3e+38, 3e+38] overflows f32"));
  EXPECT_THAT(Run("dynamic_quantize_symmetric", wide)[0].values<int8_t>(), ElementsAre(127, -127));
}

}  // namespace
}  // namespace fuselage::ops::dynamic_quantize
