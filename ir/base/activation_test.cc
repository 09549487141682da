#include "ir/base/activation.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fuselage {
namespace {

TEST(Activation, IsReadAndWritten) {
  for (const char* text :
       {"none", "relu", "clamp(min=0, max=6)", "clamp(min=-0.5, max=inf)", "clamp(min=-inf, max=0.1)", "hardswish",
        "hardsigmoid", "hardsigmoid(alpha=0.2)", "hardsigmoid(alpha=0.2, beta=0.25)", "leaky_relu",
        "leaky_relu(negative_slope=0.1)", "sigmoid", "silu", "tanh", "gelu", "gelu(approximate=tanh)", "mish",
        "leaky_relu(negative_slope=0.2), clamp(min=-0.4, max=inf)", "silu, clamp(min=0, max=6)"}) {
    const absl::StatusOr<Activation> activation = ParseActivation(text);
    ASSERT_TRUE(activation.ok()) << activation.status();
    EXPECT_EQ(ToString(*activation), text);
  }
  EXPECT_TRUE(ParseActivation("clamp(min=0, max=inf)")->is_relu());
  EXPECT_TRUE(ParseActivation("clamp(min=-inf, max=inf)")->is_none());
  EXPECT_EQ(ToString(*ParseActivation("leaky_relu(negative_slope=0.01)")), "leaky_relu");
}

TEST(Activation, SaysWhatIsWanted) {
  for (const char* text : {"",
                           "elu",
                           "add",
                           "sqrt",
                           "silu(",
                           "silu()",
                           "silu(x=1)",
                           "gelu(approximate=erf)",
                           "leaky_relu(negative_slope=)",
                           "leaky_relu(negative_slope=nan)",
                           "leaky_relu(negative_slope=inf)",
                           "leaky_relu(0.1)",
                           "leaky_relu(negative_slope=1, negative_slope=1)",
                           "relu(",
                           "relu()",
                           "clamp",
                           "clamp()",
                           "clamp(min=0, max=6",
                           "clamp(min=0, max=6) ",
                           "clamp(min=, max=6)",
                           "clamp(min=nan, max=6)",
                           "clamp(min=7, max=6)",
                           "clamp(max=6, min=0)",
                           "silu, relu",
                           "silu, clamp(min=7, max=6)",
                           "silu, clamp(min=0, max=6), clamp(min=0, max=6)",
                           "clamp(min=0, max=6), silu",
                           ", clamp(min=0, max=6)"}) {
    EXPECT_THAT(std::string(ParseActivation(text).status().message()), ::testing::HasSubstr("wanted one of")) << text;
  }
}

TEST(Activation, Clamps) {
  const Activation six = *ParseActivation("clamp(min=0, max=6)");
  EXPECT_EQ(six(-1.0f), 0);
  EXPECT_EQ(six(0.5), 0.5);
  EXPECT_EQ(six(7.0), 6);
  EXPECT_TRUE(std::isnan(six(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_EQ(Activation()(-1e30f), -1e30f);
  EXPECT_TRUE(std::signbit(Activation::Relu()(-0.0f)));
}

TEST(Activation, ClampsWhatAFunctionMakes) {
  const Activation both = *ParseActivation("leaky_relu(negative_slope=0.25), clamp(min=-0.5, max=3)");
  EXPECT_EQ(both(-1.0f), -0.25f);
  EXPECT_EQ(both(-4.0), -0.5);
  EXPECT_EQ(both(4.0f), 3.0f);
  EXPECT_TRUE(std::isnan(both(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_FALSE(both.is_clamp() || both.is_function() || both.is_none());
  EXPECT_TRUE(both.without_bounds().is_function());
  EXPECT_EQ(ToString(both.bounds()), "clamp(min=-0.5, max=3)");
}

// A second clamp may lie inside of the first, overlap with it or have nothing in common with it.
TEST(Activation, TwoClampsAreOne) {
  const Activation first = *ParseActivation("clamp(min=-1, max=2)");
  for (const char* text : {"relu", "none", "clamp(min=-3, max=1)", "clamp(min=-2, max=5)", "clamp(min=3, max=4)",
                           "clamp(min=-4, max=-3)"}) {
    const Activation second = *ParseActivation(text), both = first.Then(second);
    for (float x = -5; x <= 5; x += 0.5f) EXPECT_EQ(both(x), second(first(x))) << text << " " << x;
  }
  EXPECT_EQ(ToString(ParseActivation("silu")->Then(first).Then(Activation::Relu())), "silu, clamp(min=0, max=2)");
}

TEST(Activation, NamesTheFunctions) {
  EXPECT_THAT(std::string(ParseActivation("swish").status().message()),
              ::testing::EndsWith("of gelu, hardsigmoid, hardswish, leaky_relu, mish, sigmoid, silu, tanh"));
}

// In float and in double the same function, and of no finite value NaN.
TEST(Activation, AppliesFunctions) {
  for (const auto& [op, for_codes] : elementwise::kActivations) {
    for (const float p : {0.2f, -3.0f}) {
      Activation activation;
      activation.function = ElementwiseInstruction{op, 0, 0, p, 0.5f};
      for (int i = -40; i <= 40; ++i) {
        const float x = static_cast<float>(i) / 4;
        EXPECT_NEAR(activation(x), activation(double{x}), 1e-6 * (1 + std::fabs(x))) << ToString(activation) << x;
      }
      for (const float x : {-std::numeric_limits<float>::max(), -1e20f, -100.0f, -0.0f, 1e-40f, 100.0f, 1e20f,
                            std::numeric_limits<float>::max()}) {
        EXPECT_FALSE(std::isnan(activation(x))) << ToString(activation) << " " << x;
      }
      EXPECT_TRUE(std::isnan(activation(std::numeric_limits<float>::quiet_NaN()))) << ToString(activation);
    }
  }
  EXPECT_EQ((*ParseActivation("leaky_relu(negative_slope=0.25)"))(-2.0f), -0.5f);
  EXPECT_EQ((*ParseActivation("hardswish"))(-4.0f), 0.0f);
  EXPECT_EQ((*ParseActivation("hardswish"))(4.0f), 4.0f);
}

// What stands for a function where its results become codes is within 2^-13 of it, near 0 in proportion to x, and as
// NaN as it is.
TEST(Activation, OfValuesThatBecomeCodes) {
  for (const auto& [op, for_codes] : elementwise::kActivations) {
    Activation activation;
    activation.function = ElementwiseInstruction{op, 0, 0, 0.2f, 0.5f};
    const ElementwiseInstruction function = elementwise::ForCodes(*activation.function);
    EXPECT_EQ(function.op, for_codes);
    const auto near = [&](float x) {
      const double wanted = activation(double{x}), at_zero = activation(0.0);
      const double bound = std::min(0x1p-13, std::fabs(x) * 0x1p-11 + std::fabs(at_zero) * 0x1p-13);
      return std::fabs(elementwise::Activated(function, x) - wanted) <= bound + 1e-7 * (std::fabs(wanted) + at_zero);
    };
    for (int i = -30 * 4096; i <= 30 * 4096; ++i) {
      ASSERT_TRUE(near(static_cast<float>(i) / 4096)) << ToString(activation) << " " << i / 4096.0;
    }
    for (const float x : {-0.0f, 1e-40f, 1e-6f, -1e-6f, 100.0f, -100.0f, 1e6f, -1e6f, 1e20f, -1e20f}) {
      EXPECT_TRUE(near(x)) << ToString(activation) << " " << x;
    }
    EXPECT_TRUE(std::isnan(elementwise::Activated(function, std::numeric_limits<float>::quiet_NaN())));
  }
}

TEST(Activation, OfAnOperator) {
  EXPECT_EQ(ToString(FunctionOf("leaky_relu", {{"negative_slope", Attribute(0.25)}})),
            "leaky_relu(negative_slope=0.25)");
  EXPECT_TRUE(FunctionOf("relu", {}).is_none());
  EXPECT_TRUE(FunctionOf("sin", {}).is_none());
  EXPECT_TRUE(FunctionOf("conv2d", {}).is_none());
}

}  // namespace
}  // namespace fuselage
