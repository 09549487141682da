#include "ir/ops/unary/unary.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::unary {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;

class UnaryTest : public ::testing::Test {
 protected:
  float Map(absl::string_view op, float x, const AttributeMap& attributes = {}) {
    return ops_.Run(op, {Tensor::Scalar(x)}, attributes).data<float>()[0];
  }
  const OpTester ops_{Register};
};

TEST_F(UnaryTest, Values) {
  EXPECT_EQ(Map("relu", -1), 0);
  EXPECT_EQ(Map("relu", 2), 2);
  EXPECT_EQ(Map("relu6", -1), 0);
  EXPECT_EQ(Map("relu6", 2), 2);
  EXPECT_EQ(Map("relu6", 7), 6);
  EXPECT_FLOAT_EQ(Map("sigmoid", 1), 0.7310585786f);
  EXPECT_FLOAT_EQ(Map("sigmoid", -800), 0);
  EXPECT_FLOAT_EQ(Map("tanh", 0.5f), 0.4621171573f);
  EXPECT_FLOAT_EQ(Map("silu", 2), 1.7615941560f);
  EXPECT_FLOAT_EQ(Map("gelu", 1), 0.8413447461f);
  EXPECT_FLOAT_EQ(Map("gelu", 1, {{"approximate", "tanh"}}), 0.8411919906f);
  EXPECT_FLOAT_EQ(Map("hardsigmoid", 1), 1.0f / 6 + 0.5f);
  EXPECT_FLOAT_EQ(Map("hardsigmoid", 1, {{"alpha", 0.2}, {"beta", 0.3}}), 0.5f);
  EXPECT_EQ(Map("hardsigmoid", 9), 1);
  EXPECT_EQ(Map("hardsigmoid", -9), 0);
  EXPECT_FLOAT_EQ(Map("hardswish", 1), 2.0f / 3);
  EXPECT_EQ(Map("hardswish", 4), 4);
  EXPECT_EQ(Map("hardswish", -4), 0);
  EXPECT_FLOAT_EQ(Map("leaky_relu", -2), -0.02f);
  EXPECT_FLOAT_EQ(Map("leaky_relu", -2, {{"negative_slope", 0.5}}), -1);
  EXPECT_EQ(Map("leaky_relu", 2), 2);
  EXPECT_EQ(Map("clamp", 7, {{"min", 0.0}, {"max", 6.0}}), 6);
  EXPECT_EQ(Map("clamp", -7, {{"min", 0.0}}), 0);
  EXPECT_EQ(Map("clamp", 7), 7);
  EXPECT_EQ(Map("clamp", 0, {{"min", 5.0}, {"max", 1.0}}), 1);  // As ONNX and PyTorch: the maximum wins.
}

TEST_F(UnaryTest, NanStays) {
  for (const char* op :
       {"relu", "relu6", "sigmoid", "tanh", "silu", "gelu", "hardsigmoid", "hardswish", "leaky_relu", "clamp"}) {
    EXPECT_TRUE(std::isnan(Map(op, std::numeric_limits<float>::quiet_NaN()))) << op;
  }
}

TEST_F(UnaryTest, Integers) {
  const int64_t big = (int64_t{1} << 62) + 1;
  EXPECT_THAT(ops_.Run("relu", {Tensor::Of<int64_t>({2}, {-big, big})}).values<int64_t>(), ElementsAre(0, big));
  EXPECT_THAT(ops_.Run("clamp", {Tensor::Of<int8_t>({3}, {-9, 1, 9})}, {{"min", -2.0}, {"max", 3.0}}).values<int8_t>(),
              ElementsAre(-2, 1, 3));
  const TensorType i32{DType::kI32, {2}, std::nullopt, Layout::kRowMajor};
  EXPECT_THAT(ops_.Infer("clamp", {i32}, {{"min", 0.5}}), HasSubstr("min=0.5: wanted a whole number for i32[2]"));
  for (const char* op : {"sigmoid", "tanh", "silu", "gelu", "hardswish", "hardsigmoid", "leaky_relu"}) {
    EXPECT_THAT(ops_.Infer(op, {i32}), HasSubstr("wanted f16, f32 or f64")) << op;
  }
}

TEST_F(UnaryTest, ShapesAndTypesStay) {
  const Tensor half = ops_.Run("tanh", {Cast(Iota({2, 0, 3}), DType::kF16)});
  EXPECT_EQ(half.shape(), (Shape{2, 0, 3}));
  EXPECT_EQ(half.dtype(), DType::kF16);
  EXPECT_EQ(ops_.Run("sigmoid", {Tensor::Scalar(1.0)}).At(0), 1 / (1 + std::exp(-1.0)));
}

TEST_F(UnaryTest, Errors) {
  const TensorType codes{DType::kU8, {2}, PerTensor(0.5f, 3), Layout::kRowMajor};
  EXPECT_THAT(ops_.Infer("relu", {codes}), HasSubstr("input u8[2]<scale=0.5, zp=3>: wanted values, found quantized"));
  const TensorType f32{DType::kF32, {2}, std::nullopt, Layout::kRowMajor};
  EXPECT_THAT(ops_.Infer("gelu", {f32}, {{"approximate", "fast"}}), HasSubstr("one of \"none\", \"tanh\""));
  EXPECT_THAT(ops_.Infer("clamp", {f32}, {{"max", std::nan("")}}), HasSubstr("max=nan: wanted a number"));
  EXPECT_THAT(ops_.Infer("relu", {{{DType::kBool, {2}, std::nullopt, Layout::kRowMajor}}}),
              HasSubstr("wanted numbers"));
}

TEST_F(UnaryTest, Aliases) {
  for (const char* alias : {"torch.relu", "torch.nn.functional.relu", "relu_"}) {
    EXPECT_EQ(ops_.registry().FindOrNull(alias)->name, "relu") << alias;
  }
}

}  // namespace
}  // namespace fuselage::ops::unary
