#include "ir/base/attention_weight.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace fuselage {
namespace {

int32_t Weight(float distance) { return AttentionWeight<OneLane>(distance) - kRoundingBits; }

// Every sixteenth float from -0 to below what has a weight: the nearest code, unless the exact weight lies within 0.001
// of the middle between two, which are where a polynomial may decide otherwise; and never less than farther away.
TEST(AttentionWeight, IsTheNearestCode) {
  int32_t before = 255;
  int64_t others = 0, all = 0;
  for (uint32_t bits = 0x80000000u; bits < 0xC1000000u; bits += 16) {
    float distance;
    std::memcpy(&distance, &bits, sizeof(distance));
    const double exact = 255 * std::exp(static_cast<double>(distance));
    const int32_t weight = Weight(distance);
    ASSERT_LE(std::fabs(weight - exact), 0.501) << distance;
    others += weight != std::nearbyint(exact);
    ++all;
    ASSERT_LE(weight, before) << distance;
    before = weight;
  }
  EXPECT_EQ(before, 0);
  EXPECT_LT(others, all / 1000);
}

TEST(AttentionWeight, OfTheLargestScoreAndOfNone) {
  EXPECT_EQ(Weight(0.0f), 255);
  EXPECT_EQ(Weight(-0.0f), 255);
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float distance : {-7.0f, -86.0f, -88.0f, -127.0f, -1e30f, -infinity, std::nanf("")}) {
    EXPECT_EQ(Weight(distance), 0) << distance;
  }
}

}  // namespace
}  // namespace fuselage
