#include "passes/quantize/observers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "ir/testing/matchers.h"

namespace fuselage::quantize {
namespace {

using ::fuselage::testing::StatusIs;
using ::testing::HasSubstr;

std::vector<float> Noise(int count, uint32_t seed, double scale) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>((static_cast<double>(random()) / 0x1p32 - 0.25) * scale);
  return values;
}

std::unique_ptr<Observer> Percentile(double percent) {
  QuantizeOptions::Observer options;
  options.mutable_percentile()->set_percent(percent);
  return *MakeObserver(options);
}

TEST(FiniteRangeTest, FindsBothEndsInEveryLane) {
  for (size_t length : {1, 7, 8, 9, 31}) {
    for (size_t at = 0; at < length; ++at) {
      std::vector<float> values(length, 0.5f);
      values[at] = -3;
      values[length - 1 - at] += 2;
      const float low = *std::min_element(values.begin(), values.end());
      const float high = *std::max_element(values.begin(), values.end());
      const absl::StatusOr<Range> range = FiniteRange(values);
      ASSERT_OK(range);
      EXPECT_EQ(range->min, low);
      EXPECT_EQ(range->max, high);
    }
  }
}

TEST(FiniteRangeTest, NamesTheElementThatIsNotFinite) {
  const float kBad[] = {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                        -std::numeric_limits<float>::infinity()};
  const char* const kText[] = {"nan", "inf", "-inf"};
  for (int kind = 0; kind < 3; ++kind) {
    for (int at = 0; at < 19; ++at) {
      std::vector<float> values(19, 1.0f);
      values[at] = kBad[kind];
      EXPECT_THAT(FiniteRange(values),
                  StatusIs(absl::StatusCode::kInvalidArgument, absl::StrCat("element ", at, " is ", kText[kind])));
    }
  }
}

TEST(MinMaxObserverTest, CoversAllSamples) {
  MinMaxObserver observer;
  EXPECT_OK(observer.Observe({1, 2}));
  EXPECT_OK(observer.Observe({}));
  EXPECT_OK(observer.Observe({1.5f, 4}));
  EXPECT_EQ(observer.range().min, 1);
  EXPECT_EQ(observer.range().max, 4);
}

TEST(HistogramTest, QuantilesAgreeWithSortedValues) {
  std::vector<float> all;
  Histogram histogram;
  for (uint32_t sample = 0; sample < 20; ++sample) {
    const std::vector<float> values = Noise(5000, sample, 1 + sample);
    const absl::StatusOr<Range> range = FiniteRange(values);
    histogram.Add(values, *range);
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
    forward.Add(samples[i], *FiniteRange(samples[i]));
    const std::vector<float>& last = samples[samples.size() - 1 - i];
    backward.Add(last, *FiniteRange(last));
  }
  EXPECT_EQ(forward.total(), backward.total());
  for (int i = 0; i <= 1000; ++i) EXPECT_EQ(forward.Quantile(i / 1000.0), backward.Quantile(i / 1000.0)) << i;
}

TEST(HistogramTest, TakesTheWholeRangeOfFloats) {
  constexpr float kMax = std::numeric_limits<float>::max();
  constexpr float kTiny = std::numeric_limits<float>::denorm_min();
  Histogram histogram;
  for (const std::vector<float>& values :
       {std::vector<float>{kTiny}, {0, 0}, {-kTiny}, {1}, {kMax}, {-kMax, kMax}, {kTiny, 1e-20f}}) {
    histogram.Add(values, *FiniteRange(values));
  }
  EXPECT_EQ(histogram.total(), 10);
  EXPECT_EQ(histogram.Quantile(0), -kMax);
  EXPECT_EQ(histogram.Quantile(1), kMax);
  EXPECT_NEAR(histogram.Quantile(0.5), 0, kMax / 1000);
}

TEST(PercentileObserverTest, CutsOffOutliers) {
  const std::unique_ptr<Observer> observer = Percentile(99.9);
  for (uint32_t sample = 0; sample < 10; ++sample) {
    std::vector<float> values = Noise(10000, sample, 4);  // [-1, 3)
    values[17] = 1000;
    values[18] = -500;
    EXPECT_OK(observer->Observe(values));
  }
  EXPECT_NEAR(observer->range().min, -1, 0.5);  // A bin is 0.5 wide: the outliers make it so.
  EXPECT_NEAR(observer->range().max, 3, 0.5);
}

TEST(PercentileObserverTest, KeepsAConstant) {
  const std::unique_ptr<Observer> observer = Percentile(99.99);
  EXPECT_OK(observer->Observe(std::vector<float>(100, 2.5f)));
  EXPECT_EQ(observer->range().min, 2.5);
  EXPECT_EQ(observer->range().max, 2.5);
}

TEST(MakeObserverTest, RejectsPercentages) {
  for (double percent : {-1.0, 50.0, 100.5, std::nan("")}) {
    QuantizeOptions::Observer options;
    options.mutable_percentile()->set_percent(percent);
    EXPECT_THAT(MakeObserver(options), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("wanted more than 50")));
  }
}

}  // namespace
}  // namespace fuselage::quantize
