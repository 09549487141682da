#include "ir/testing/scaling.h"

#include <gtest/gtest.h>

namespace fuselage::testing {
namespace {

TEST(CostRatioTest, TellsLinearFromQuadratic) {
  volatile int64_t sum = 0;
  const auto linear = [&](int64_t n) {
    return [&sum, n] {
      for (int64_t i = 0; i < 1000 * n; ++i) sum = sum + i;
    };
  };
  const auto quadratic = [&](int64_t n) {
    return [&sum, n] {
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t k = 0; k < n; ++k) sum = sum + k;
      }
    };
  };
  EXPECT_LT(CostRatio(1000, linear), kMostIfLinear);
  EXPECT_GT(CostRatio(1000, quadratic), kMostIfLinear);
}

}  // namespace
}  // namespace fuselage::testing
