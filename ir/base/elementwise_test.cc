#include "ir/base/elementwise.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fuselage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Steps, TextRoundTrips) {
  const std::vector<std::string> texts = {"add(0, 1, activation=\"relu\", alpha=2.0)", "clamp(2, max=6.0, min=-inf)",
                                          "mul(3, 0)"};
  const auto steps = ParseElementwiseSteps(texts, 2);
  ASSERT_TRUE(steps.ok()) << steps.status();
  std::vector<std::string> printed;
  for (const ElementwiseStep& step : *steps) printed.push_back(ToString(step));
  EXPECT_EQ(printed, texts);
  const auto program = CompileElementwise(*steps);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ((*program)[0].p, 2.0f);
  EXPECT_EQ((*program)[0].q, 1.0f);
  EXPECT_EQ((*program)[1].p, -std::numeric_limits<float>::infinity());
  EXPECT_EQ((*program)[1].q, 6.0f);
  EXPECT_EQ((*program)[2].a, 3);
}

TEST(Steps, Errors) {
  const auto error = [](std::vector<std::string> steps) {
    const auto parsed = ParseElementwiseSteps(steps, 2);
    return std::string(parsed.ok() ? CompileElementwise(*parsed).status().message() : parsed.status().message());
  };
  EXPECT_THAT(error({}), HasSubstr("no steps"));
  EXPECT_THAT(error({"relu"}), HasSubstr("step \"relu\": wanted op(values"));
  EXPECT_THAT(error({"conv2d(0)"}), HasSubstr("'conv2d' is no elementwise step"));
  EXPECT_THAT(error({"relu(2)"}), HasSubstr("'2', wanted a value in [0, 2)"));
  EXPECT_THAT(error({"relu(-1)"}), HasSubstr("'-1', wanted a value"));
  EXPECT_THAT(error({"relu(0, 1)"}), HasSubstr("2 values, wanted 1"));
  EXPECT_THAT(error({"relu(0, slope=1.0)"}), HasSubstr("slope=1.0"));
  EXPECT_THAT(error({"clamp(0, max=much)"}), HasSubstr("'much' is no value"));
  EXPECT_THAT(error({"clamp(0, max=nan)"}), HasSubstr("max=nan"));
  EXPECT_THAT(error({"add(0, 1, activation=\"tanh\")"}), HasSubstr("activation=\"tanh\""));
}

float Evaluate(const char* step, float x) {
  const ElementwiseInstruction instruction = (*CompileElementwise(*ParseElementwiseSteps({step}, 1)))[0];
  float y = 0;
  elementwise::Apply(instruction, &x, &x, &y, 1);
  return y;
}

// Against double, from the smallest numbers to far beyond saturation.
TEST(Math, FollowsTheFunctions) {
  struct Case {
    const char* step;
    double (*function)(double);
    double absolute, relative;
  };
  const Case cases[] = {
      {"sigmoid(0)", [](double x) { return 1 / (1 + std::exp(-x)); }, 1e-37, 4e-7},
      {"silu(0)", [](double x) { return x / (1 + std::exp(-x)); }, 1e-35, 4e-7},
      {"tanh(0)", [](double x) { return std::tanh(x); }, 0, 4e-7},
      {"gelu(0)", [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }, 5e-7, 4e-7},
      {"gelu(0, approximate=\"tanh\")",
       [](double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }, 5e-7,
       4e-7},
      {"hardswish(0)", [](double x) { return x * std::min(1.0, std::max(0.0, x / 6 + 0.5)); }, 1e-6, 2e-7},
  };
  for (const Case& c : cases) {
    for (int k = -1270; k <= 70; ++k) {
      for (const double sign : {-1.0, 1.0}) {
        const float x = static_cast<float>(sign * std::exp2(k / 10.0));
        const double wanted = c.function(x), found = Evaluate(c.step, x);
        ASSERT_NEAR(found, wanted, c.absolute + c.relative * std::fabs(wanted)) << c.step << " of " << x;
      }
    }
    EXPECT_TRUE(std::isnan(Evaluate(c.step, NAN))) << c.step;
  }
}

// What is computed in double and rounded once, over all magnitudes of float32: to one unit in the last place.
TEST(Math, WideOnesAreWithinOneUlp) {
  const struct {
    const char* step;
    double (*function)(double);
  } cases[] = {
      {"exp(0)", std::exp},
      {"log(0)", std::log},
      {"sin(0)", std::sin},
      {"cos(0)", std::cos},
      {"tan(0)", std::tan},
      {"asin(0)", std::asin},
      {"acos(0)", std::acos},
      {"atan(0)", std::atan},
      {"sinh(0)", std::sinh},
      {"cosh(0)", std::cosh},
      {"asinh(0)", std::asinh},
      {"acosh(0)", std::acosh},
      {"atanh(0)", std::atanh},
      {"erf(0)", std::erf},
      {"elu(0)", [](double x) { return x < 0 ? std::expm1(x) : x; }},
      {"celu(0, alpha=2.0)", [](double x) { return x < 0 ? 2 * std::expm1(x / 2) : x; }},
      {"selu(0, alpha=0.5, gamma=3.0)", [](double x) { return 3 * (x < 0 ? 0.5 * std::expm1(x) : x); }},
      {"softplus(0)", [](double x) { return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x))); }},
      {"mish(0)", [](double x) { return x * std::tanh(std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x)))); }},
  };
  const auto expect_near = [](const char* step, float x, float found, double wanted) {
    const float rounded = static_cast<float>(wanted);
    if (std::isnan(rounded) || std::isinf(rounded)) {
      ASSERT_TRUE(std::isnan(rounded) ? std::isnan(found) : found == rounded) << step << " of " << x << ": " << found;
    } else {
      const float above = std::nextafter(rounded, INFINITY), below = std::nextafter(rounded, -INFINITY);
      ASSERT_TRUE(found >= below && found <= above) << step << " of " << x << ": " << found << ", wanted " << wanted;
    }
  };
  for (const auto& c : cases) {
    for (int k = -1490; k <= 490; ++k) {  // To 2^49: beyond 2^50 there is no sine.
      for (const double sign : {-1.0, 1.0}) {
        const float x = static_cast<float>(sign * std::exp2(k / 10.0));
        expect_near(c.step, x, Evaluate(c.step, x), c.function(x));
      }
    }
    for (const float x : {0.0f, 1.0f, -1.0f, INFINITY}) expect_near(c.step, x, Evaluate(c.step, x), c.function(x));
    EXPECT_TRUE(std::isnan(Evaluate(c.step, NAN))) << c.step;
  }
  EXPECT_EQ(Evaluate("sin(0)", 1e30f), 0);
  EXPECT_EQ(Evaluate("cos(0)", 1e30f), 1);
}

TEST(Math, PowIsIeees) {
  const ElementwiseInstruction pow = (*CompileElementwise(*ParseElementwiseSteps({"pow(0, 1)"}, 2)))[0];
  const float values[] = {0.0f,  -0.0f,      1.0f,  -1.0f,  INFINITY,   -INFINITY,   NAN,    2.0f,
                          -2.0f, 0.5f,       -0.5f, 3.0f,   -3.0f,      1e30f,       -1e30f, 1e-30f,
                          0.1f,  1.0000001f, -7.5f, 12.25f, 8388609.0f, -16777216.0f};
  for (const float x : values) {
    for (const float y : values) {
      float found = 0;
      elementwise::Apply(pow, &x, &y, &found, 1);
      const float wanted = static_cast<float>(std::pow(static_cast<double>(x), static_cast<double>(y)));
      if (std::isnan(wanted)) {
        EXPECT_TRUE(std::isnan(found)) << x << " to the " << y;
      } else if (wanted == 0 || std::isinf(wanted)) {
        EXPECT_TRUE(found == wanted && std::signbit(found) == std::signbit(wanted)) << x << " to the " << y;
      } else {
        EXPECT_NEAR(found, wanted, 1.2e-7 * std::fabs(wanted)) << x << " to the " << y;
      }
    }
  }
}

TEST(Steps, AllHaveNames) {
  for (const absl::string_view step : ElementwiseSteps()) EXPECT_TRUE(IsElementwiseStep(step)) << step;
  EXPECT_THAT(ElementwiseSteps(), ::testing::Contains("pow"));
}

TEST(Math, SimpleOnesAreExact) {
  EXPECT_EQ(Evaluate("round(0)", 2.5f), 2);
  EXPECT_EQ(Evaluate("round(0)", -1.5f), -2);
  EXPECT_EQ(Evaluate("floor(0)", -1.5f), -2);
  EXPECT_EQ(Evaluate("ceil(0)", -1.5f), -1);
  EXPECT_EQ(Evaluate("sign(0)", -1.5f), -1);
  EXPECT_EQ(Evaluate("abs(0)", -1.5f), 1.5f);
  EXPECT_EQ(Evaluate("neg(0)", -1.5f), 1.5f);
  EXPECT_EQ(Evaluate("sqrt(0)", 9), 3);
  EXPECT_EQ(Evaluate("reciprocal(0)", 4), 0.25f);
  EXPECT_EQ(Evaluate("softsign(0)", -3), -0.75f);
  EXPECT_EQ(Evaluate("threshold(0, threshold=1.0, value=9.0)", 1), 9);
  EXPECT_EQ(Evaluate("threshold(0, threshold=1.0, value=9.0)", 1.5f), 1.5f);
  EXPECT_EQ(Evaluate("prelu(0, 0)", -3), 9);
  EXPECT_TRUE(std::isnan(Evaluate("maximum(0, 0)", NAN)));
  EXPECT_TRUE(std::isnan(Evaluate("fmod(0, 0)", 0)));
  EXPECT_EQ(Evaluate("remainder(0, 0)", 5), 0);
  EXPECT_EQ(Evaluate("relu(0)", -3), 0);
  EXPECT_EQ(Evaluate("relu(0)", 3), 3);
  EXPECT_EQ(Evaluate("clamp(0, max=6.0, min=0.0)", 7), 6);
  EXPECT_EQ(Evaluate("clamp(0, max=6.0, min=0.0)", -7), 0);
  EXPECT_EQ(Evaluate("leaky_relu(0, negative_slope=0.5)", -3), -1.5f);
  EXPECT_EQ(Evaluate("add(0, 0, alpha=3.0)", 2), 8);
  EXPECT_EQ(Evaluate("add(0, 0, activation=\"relu\")", -2), 0);
  EXPECT_EQ(Evaluate("sub(0, 0)", 5), 0);
  EXPECT_EQ(Evaluate("mul(0, 0)", 5), 25);
  EXPECT_EQ(Evaluate("div(0, 0)", 5), 1);
  EXPECT_EQ(Evaluate("hardsigmoid(0)", -4), 0);
  EXPECT_EQ(Evaluate("hardsigmoid(0)", 4), 1);
  EXPECT_EQ(Evaluate("tanh(0)", 0), 0);
}

}  // namespace
}  // namespace fuselage
