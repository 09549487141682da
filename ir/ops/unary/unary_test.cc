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

TEST_F(UnaryTest, MoreActivations) {
  EXPECT_FLOAT_EQ(Map("elu", -1), std::expm1(-1.0f));
  EXPECT_FLOAT_EQ(Map("elu", -1, {{"alpha", 2.0}}), 2 * std::expm1(-1.0f));
  EXPECT_EQ(Map("elu", 3), 3);
  EXPECT_FLOAT_EQ(Map("selu", -1), -1.1113307f);
  EXPECT_FLOAT_EQ(Map("selu", 2, {{"gamma", 3.0}}), 6);
  EXPECT_FLOAT_EQ(Map("celu", -1, {{"alpha", 2.0}}), 2 * std::expm1(-0.5f));
  EXPECT_FLOAT_EQ(Map("softplus", 1), 1.3132616f);
  EXPECT_EQ(Map("softplus", 1000), 1000);
  EXPECT_EQ(Map("softplus", -1000), 0);
  EXPECT_FLOAT_EQ(Map("softsign", -3), -0.75f);
  EXPECT_FLOAT_EQ(Map("mish", 1), 0.86509836f);
  EXPECT_EQ(Map("threshold", 1, {{"threshold", 1.0}, {"value", 9.0}}), 9);
  EXPECT_EQ(Map("threshold", 2, {{"threshold", 1.0}, {"value", 9.0}}), 2);
}

TEST_F(UnaryTest, Functions) {
  const struct {
    const char* op;
    float x, y;
  } cases[] = {{"abs", -2, 2},
               {"neg", 2, -2},
               {"sign", -3, -1},
               {"sign", 0, 0},
               {"floor", -1.5f, -2},
               {"ceil", -1.5f, -1},
               {"round", 2.5f, 2},
               {"round", -1.5f, -2},
               {"sqrt", 9, 3},
               {"reciprocal", 4, 0.25f},
               {"exp", 1, 2.7182818f},
               {"log", 2, 0.6931472f},
               {"erf", 0.5f, 0.5204999f},
               {"sin", 1, 0.84147098f},
               {"cos", 1, 0.54030231f},
               {"tan", 1, 1.5574077f},
               {"asin", 0.5f, 0.5235988f},
               {"acos", 0.5f, 1.0471976f},
               {"atan", 2, 1.1071487f},
               {"sinh", 1, 1.1752012f},
               {"cosh", 1, 1.5430806f},
               {"asinh", 1, 0.8813736f},
               {"acosh", 2, 1.3169579f},
               {"atanh", 0.5f, 0.5493061f}};
  for (const auto& c : cases) EXPECT_FLOAT_EQ(Map(c.op, c.x), c.y) << c.op << " of " << c.x;
  EXPECT_TRUE(std::signbit(Map("neg", 0)));
}

TEST_F(UnaryTest, Predicates) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor x = Tensor::Of<float>({4}, {1, NAN, infinity, -infinity});
  EXPECT_THAT(ops_.Run("isnan", {x}).values<bool>(), ElementsAre(false, true, false, false));
  EXPECT_THAT(ops_.Run("isinf", {x}).values<bool>(), ElementsAre(false, false, true, true));
  EXPECT_THAT(ops_.Run("isinf", {x}, {{"detect_negative", false}}).values<bool>(),
              ElementsAre(false, false, true, false));
  EXPECT_THAT(ops_.Run("logical_not", {Tensor::Of<bool>({2}, {true, false})}).values<bool>(), ElementsAre(false, true));
}

TEST_F(UnaryTest, IntegersWrap) {
  const int64_t big = (int64_t{1} << 62) + 1;
  EXPECT_THAT(ops_.Run("abs", {Tensor::Of<int64_t>({2}, {-big, INT64_MIN})}).values<int64_t>(),
              ElementsAre(big, INT64_MIN));
  EXPECT_THAT(ops_.Run("neg", {Tensor::Of<int8_t>({2}, {-128, 5})}).values<int8_t>(), ElementsAre(-128, -5));
  EXPECT_THAT(ops_.Run("sign", {Tensor::Of<int32_t>({3}, {-7, 0, 7})}).values<int32_t>(), ElementsAre(-1, 0, 1));
  EXPECT_THAT(ops_.Run("bitwise_not", {Tensor::Of<uint8_t>({1}, {5})}).values<uint8_t>(), ElementsAre(250));
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
