#include "harness/report/compare.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fuselage::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A run of 41 samples around `median` ms, five percent to both sides.
Results RunOf(double median, double top1 = 90) {
  Results results;
  auto* variant = results.add_variants();
  variant->set_name("int8");
  variant->set_top1(top1);
  variant->set_images(100);
  variant->set_weight_bytes(1000);
  auto* m = variant->add_measurements();
  m->set_batch(1);
  m->set_threads(2);
  m->mutable_latency_ms()->set_median(median);
  m->set_peak_memory_bytes(5000);
  for (int i = -20; i <= 20; ++i) m->add_samples_ms(median * (1 + 0.0025 * i));
  return results;
}

TEST(Compare, BeyondTheNoiseOnly) {
  EXPECT_EQ(Compare(RunOf(10), RunOf(10), 0).worse, 0);
  EXPECT_EQ(Compare(RunOf(10), RunOf(10.02), 0).worse, 0) << "within the noise";
  EXPECT_EQ(Compare(RunOf(10), RunOf(12), 0).worse, 1);
  EXPECT_EQ(Compare(RunOf(10), RunOf(12), 25).worse, 0) << "within the tolerance";
  const Comparison better = Compare(RunOf(10), RunOf(8), 0);
  EXPECT_EQ(better.worse, 0);
  EXPECT_THAT(better.text, HasSubstr("better"));
  EXPECT_THAT(Compare(RunOf(10), RunOf(12), 0).text, HasSubstr("+20.0 %"));
}

TEST(Compare, WhatRepeatsExactly) {
  EXPECT_EQ(Compare(RunOf(10, 90), RunOf(10, 89.9), 0).worse, 1);
  EXPECT_EQ(Compare(RunOf(10, 90), RunOf(10, 89.9), 1).worse, 0);
  EXPECT_EQ(Compare(RunOf(10, 90), RunOf(10, 90.1), 0).worse, 0);
  Results more = RunOf(10);
  more.mutable_variants(0)->set_weight_bytes(1001);
  more.mutable_variants(0)->mutable_measurements(0)->set_peak_memory_bytes(5001);
  EXPECT_EQ(Compare(RunOf(10), more, 0).worse, 2);
}

TEST(Compare, AccuracyOfTheSameSamplesOnly) {
  Results other = RunOf(10, 80);
  other.mutable_variants(0)->set_images(10);
  const Comparison comparison = Compare(RunOf(10, 90), other, 0);
  EXPECT_THAT(comparison.text, Not(HasSubstr("top-1")));
  EXPECT_EQ(comparison.worse, 0);
}

// What cannot be judged has not passed.
TEST(Compare, WhatIsGoneIsWorse) {
  Results silent = RunOf(10), halved = RunOf(10), blind = RunOf(10), not_a_number = RunOf(10);
  silent.mutable_variants(0)->mutable_measurements(0)->clear_samples_ms();
  EXPECT_THAT(Compare(RunOf(10), silent, 0).text, HasSubstr("NO SAMPLES"));
  EXPECT_EQ(Compare(RunOf(10), silent, 0).worse, 1);
  halved.mutable_variants(0)->clear_measurements();
  EXPECT_THAT(Compare(RunOf(10), halved, 0).text, HasSubstr("GONE"));
  EXPECT_EQ(Compare(RunOf(10), halved, 0).worse, 1);
  blind.mutable_variants(0)->clear_top1();
  EXPECT_EQ(Compare(RunOf(10), blind, 0).worse, 1);
  not_a_number.mutable_variants(0)->set_top1(std::nan(""));
  EXPECT_EQ(Compare(RunOf(10), not_a_number, 50).worse, 1);
  EXPECT_EQ(Compare(RunOf(10), Results(), 0).worse, 1);
  EXPECT_THAT(Compare(Results(), RunOf(10), 0).text, HasSubstr("nothing got worse"));
}

TEST(Compare, InfinityMayStay) {
  Results exact = RunOf(10), near = RunOf(10);
  exact.mutable_variants(0)->set_snr_db(std::numeric_limits<double>::infinity());
  near.mutable_variants(0)->set_snr_db(60);
  EXPECT_EQ(Compare(exact, exact, 0).worse, 0);
  EXPECT_THAT(Compare(exact, exact, 0).text, Not(HasSubstr("nan")));
  EXPECT_EQ(Compare(exact, near, 0).worse, 1);
  EXPECT_EQ(Compare(near, exact, 0).worse, 0);
}

}  // namespace
}  // namespace fuselage::report
