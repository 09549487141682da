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

TEST(Math, SimpleOnesAreExact) {
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
