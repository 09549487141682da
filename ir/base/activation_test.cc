#include "ir/base/activation.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fuselage {
namespace {

TEST(Activation, IsReadAndWritten) {
  for (const char* text :
       {"none", "relu", "clamp(min=0, max=6)", "clamp(min=-0.5, max=inf)", "clamp(min=-inf, max=0.1)"}) {
    const absl::StatusOr<Activation> activation = ParseActivation(text);
    ASSERT_TRUE(activation.ok()) << activation.status();
    EXPECT_EQ(ToString(*activation), text);
  }
  EXPECT_TRUE(ParseActivation("clamp(min=0, max=inf)")->is_relu());
  EXPECT_TRUE(ParseActivation("clamp(min=-inf, max=inf)")->is_none());
}

TEST(Activation, SaysWhatIsWanted) {
  for (const char* text :
       {"", "gelu", "relu(", "clamp", "clamp()", "clamp(min=0, max=6", "clamp(min=0, max=6) ", "clamp(min=, max=6)",
        "clamp(min=nan, max=6)", "clamp(min=7, max=6)", "clamp(max=6, min=0)"}) {
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

}  // namespace
}  // namespace fuselage
