#include "passes/quantize/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "ir/testing/matchers.h"

namespace fuselage::quantize {
namespace {

std::vector<float> Noise(int count, uint32_t seed, double scale) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>((static_cast<double>(random()) / 0x1p32 - 0.25) * scale);
  return values;
}

void Add(Histogram& histogram, const std::vector<float>& values) {
  const auto [min, max] = std::minmax_element(values.begin(), values.end());
  histogram.Add(values, {*min, *max});
}

TEST(HistogramTest, QuantilesAgreeWithSortedValues) {
  std::vector<float> all;
  Histogram histogram;
  for (uint32_t sample = 0; sample < 20; ++sample) {
    const std::vector<float> values = Noise(5000, sample, 1 + sample);
    Add(histogram, values);
    all.insert(all.end(), values.begin(), values.end());
  }
  std::sort(all.begin(), all.end());
  const double bin = (all.back() - all.front()) / (Histogram::kBins / 2);  // Bins are at most twice as wide as needed.
  for (double fraction : {0.0, 0.001, 0.25, 0.5, 0.9, 0.999, 0.9999, 1.0}) {
    const double exact = all[std::min<size_t>(all.size() - 1, static_cast<size_t>(fraction * all.size()))];
    EXPECT_NEAR(histogram.Quantile(fraction), exact, bin) << fraction;
  }
  EXPECT_EQ(histogram.Quantile(0), all.front());
  EXPECT_EQ(histogram.Quantile(1), all.back());
}

TEST(HistogramTest, OrderOfSamplesDoesNotMatter) {
  std::vector<std::vector<float>> samples;
  for (uint32_t i = 0; i < 12; ++i) samples.push_back(Noise(300, i, std::ldexp(1.0, static_cast<int>(i * 7 % 12) - 6)));
  samples.push_back({1e-30f, -1e-30f, 0, 3});
  samples.push_back({-5e-39f});
  Histogram forward, backward;
  for (size_t i = 0; i < samples.size(); ++i) {
    Add(forward, samples[i]);
    Add(backward, samples[samples.size() - 1 - i]);
  }
  EXPECT_EQ(forward.total(), backward.total());
  for (int i = 0; i <= 1000; ++i) EXPECT_EQ(forward.Quantile(i / 1000.0), backward.Quantile(i / 1000.0)) << i;
}

TEST(HistogramTest, MergedPartsAreTheWhole) {
  std::vector<std::vector<float>> samples;
  for (uint32_t i = 0; i < 9; ++i) samples.push_back(Noise(300, i, std::ldexp(1.0, static_cast<int>(i * 7 % 12) - 6)));
  samples.push_back({0, 0, 3});
  samples.push_back({1e30f});
  samples.push_back({-5e-39f});
  Histogram whole, merged;
  for (size_t i = 0; i < samples.size(); ++i) {
    Add(whole, samples[i]);
    Histogram part;
    Add(part, samples[samples.size() - 1 - i]);
    EXPECT_OK(merged.Merge(part.range(), part.counts(), part.zeros()));
    EXPECT_OK(merged.Merge({}, {}, 0)) << "one of nothing";
  }
  EXPECT_EQ(merged.range().min, whole.range().min);
  EXPECT_EQ(merged.range().max, whole.range().max);
  EXPECT_EQ(merged.bin_width(), whole.bin_width());
  EXPECT_EQ(merged.counts(), whole.counts());
  EXPECT_EQ(merged.zeros(), whole.zeros());
  EXPECT_EQ(merged.total(), whole.total());
}

TEST(HistogramTest, MergesNothingThatNoHistogramSays) {
  Histogram histogram;
  Add(histogram, {0, 1, 2});
  const std::vector<int64_t> few(3, 1), many(Histogram::kBins + 1, 1);
  for (const std::vector<int64_t>& counts : {few, many}) {
    EXPECT_THAT(histogram.Merge({0, 1}, counts, 0),
                ::fuselage::testing::StatusIs(absl::StatusCode::kDataLoss, ::testing::HasSubstr("bins, wanted")));
  }
  EXPECT_EQ(histogram.total(), 3);
}

TEST(HistogramTest, TakesTheWholeRangeOfFloats) {
  constexpr float kMax = std::numeric_limits<float>::max();
  constexpr float kTiny = std::numeric_limits<float>::denorm_min();
  Histogram histogram;
  for (const std::vector<float>& values :
       {std::vector<float>{kTiny}, {0, 0}, {-kTiny}, {1}, {kMax}, {-kMax, kMax}, {kTiny, 1e-20f}}) {
    Add(histogram, values);
  }
  EXPECT_EQ(histogram.total(), 10);
  EXPECT_EQ(histogram.Quantile(0), -kMax);
  EXPECT_EQ(histogram.Quantile(1), kMax);
  EXPECT_NEAR(histogram.Quantile(0.5), 0, kMax / 1000);
}

TEST(HistogramTest, BinsHoldAllButTheZeros) {
  Histogram histogram;
  for (const std::vector<float>& values : {std::vector<float>{0, 0, 0.75f}, {-0.0f, -0.25f, 4}, {4, 4, 1e-9f}}) {
    Add(histogram, values);
  }
  const std::vector<Histogram::Bin> bins = histogram.NonZeroBins();
  ASSERT_EQ(bins.size(), 4);
  const double kValues[] = {-0.25, 1e-9, 0.75, 4};
  const int64_t kCounts[] = {1, 1, 1, 3};
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(bins[i].middle, kValues[i], histogram.bin_width() / 2);
    EXPECT_EQ(bins[i].count, kCounts[i]);
  }
  EXPECT_EQ(bins[3].middle, 4) << "inside the range";
  EXPECT_EQ(histogram.total(), 9);
  EXPECT_GE(histogram.bin_width() * Histogram::kBins, 4.25);
  EXPECT_LE(histogram.bin_width() * Histogram::kBins / 2, 4.25);
}

TEST(HistogramTest, MemoryIsConstantInSamplesAndRange) {
  Histogram histogram;
  for (uint32_t sample = 0; sample < 400; ++sample) {
    Add(histogram, Noise(100, sample, std::ldexp(1.0, static_cast<int>(sample % 200) - 100)));
    EXPECT_LE(histogram.NonZeroBins().size(), Histogram::kBins);
  }
  EXPECT_EQ(histogram.total(), 40'000);
}

TEST(HistogramTest, NothingAndNothingButZeros) {
  Histogram histogram;
  EXPECT_TRUE(histogram.NonZeroBins().empty());
  Add(histogram, {0, -0.0f});
  EXPECT_TRUE(histogram.NonZeroBins().empty());
  EXPECT_EQ(histogram.Quantile(0.5), 0);
}

}  // namespace
}  // namespace fuselage::quantize
