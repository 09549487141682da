#include "harness/measure/output_error.h"

#include <gtest/gtest.h>

#include <cmath>

namespace fuselage::harness {
namespace {

TEST(LogitsError, EqualLogitsDiffer0) {
  const Tensor logits = Tensor::Of<float>({2, 3}, {1, 2, 3, -1, 0, -5});
  const LogitsError error = CompareLogits(logits, logits);
  EXPECT_EQ(error.kl_divergence_bits, 0);
  EXPECT_EQ(error.agreement, 100);
}

// p = (1/2, 1/2), q = (1/4, 3/4): 1/2 log2(2) + 1/2 log2(2/3).
TEST(LogitsError, DivergenceInBits) {
  const Tensor p = Tensor::Of<float>({1, 2}, {7, 7});
  const Tensor q = Tensor::Of<float>({1, 2}, {0, std::log(3.0f)});
  const LogitsError error = CompareLogits(p, q);
  EXPECT_NEAR(error.kl_divergence_bits, 0.5 + 0.5 * std::log2(2.0 / 3), 1e-6);
  EXPECT_EQ(error.agreement, 0);
}

TEST(LogitsError, TheMeanOverRows) {
  const Tensor p = Tensor::Of<float>({2, 1, 2}, {7, 7, 0, 1});
  const Tensor q = Tensor::Of<float>({2, 1, 2}, {std::log(3.0f), 0, 0, 1});
  const LogitsError error = CompareLogits(p, q);
  EXPECT_NEAR(error.kl_divergence_bits, (0.5 + 0.5 * std::log2(2.0 / 3)) / 2, 1e-6);
  EXPECT_EQ(error.agreement, 100);
}

// A probability of 0 says nothing; NaN is no number.
TEST(LogitsError, ExtremeLogits) {
  const Tensor p = Tensor::Of<float>({1, 2}, {0, -1e30f}), q = Tensor::Of<float>({1, 2}, {0, 0});
  EXPECT_NEAR(CompareLogits(p, q).kl_divergence_bits, 1, 1e-6);
  const Tensor nan = Tensor::Of<float>({1, 2}, {std::nanf(""), 0});
  EXPECT_TRUE(std::isnan(CompareLogits(p, nan).kl_divergence_bits));
}

}  // namespace
}  // namespace fuselage::harness
