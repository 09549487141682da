#include "passes/quantize/observers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
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

using Kind = QuantizeOptions::Observer::KindCase;
constexpr Kind kKinds[] = {Kind::kMinMax, Kind::kMovingAverage, Kind::kPercentile, Kind::kMse, Kind::kEntropy};
constexpr QuantizeOptions::Activations kActivations[] = {QuantizeOptions::U8_AFFINE, QuantizeOptions::I8_AFFINE,
                                                         QuantizeOptions::I8_SYMMETRIC};

QuantizeOptions::Observer Options(Kind kind) {
  QuantizeOptions::Observer options;
  switch (kind) {
    case Kind::kMinMax: options.mutable_min_max(); break;
    case Kind::kPercentile: options.mutable_percentile(); break;
    case Kind::kMovingAverage: options.mutable_moving_average(); break;
    case Kind::kMse: options.mutable_mse(); break;
    case Kind::kEntropy: options.mutable_entropy(); break;
    case Kind::KIND_NOT_SET: break;
  }
  return options;
}

std::unique_ptr<Observer> Percentile(double percent) {
  QuantizeOptions::Observer options;
  options.mutable_percentile()->set_percent(percent);
  return *MakeObserver(options, QuantizeOptions::U8_AFFINE);
}

Range RangeFrom(Kind kind, const std::vector<std::vector<float>>& samples,
                QuantizeOptions::Activations activations = QuantizeOptions::U8_AFFINE) {
  const std::unique_ptr<Observer> observer = *MakeObserver(Options(kind), activations);
  for (const std::vector<float>& sample : samples) EXPECT_OK(observer->Observe(sample));
  return observer->range();
}

double CodeOf(double value, const Codes& codes) { return std::nearbyint(value / codes.scale) + codes.zero_point; }

// The sum of squared errors of the values themselves.
double SquaredErrorOf(const std::vector<float>& values, Range range, QuantizeOptions::Activations activations) {
  const Codes codes = ActivationCodes(range, activations);
  const IntegerRange limits = RangeOf(codes.dtype);
  double sum = 0;
  for (const float value : values) {
    const double code = std::clamp<double>(CodeOf(value, codes), limits.min, limits.max);
    sum += std::pow(value - codes.scale * (code - codes.zero_point), 2);
  }
  return sum;
}

// Points of the inverse of a distribution function: what a very large sample looks like.
template <typename Inverse>
std::vector<float> Spread(int count, Inverse inverse) {
  std::vector<float> values;
  for (int i = 0; i < count; ++i) values.push_back(static_cast<float>(inverse((i + 0.5) / count)));
  return values;
}

// Draws from a Laplace distribution with mean 0 and scale 1.
double LaplaceQuantile(double u) { return u < 0.5 ? std::log(2 * u) : -std::log(2 * (1 - u)); }

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

TEST(PercentileObserverTest, KeepsAllOfOneHundred) {
  const std::unique_ptr<Observer> observer = Percentile(100);
  EXPECT_OK(observer->Observe({-500, 1, 2, 3, 1000}));
  EXPECT_EQ(observer->range().min, -500);
  EXPECT_EQ(observer->range().max, 1000);
}

TEST(PercentileObserverTest, KeepsAConstant) {
  const std::unique_ptr<Observer> observer = Percentile(99.99);
  EXPECT_OK(observer->Observe(std::vector<float>(100, 2.5f)));
  EXPECT_EQ(observer->range().min, 2.5);
  EXPECT_EQ(observer->range().max, 2.5);
}

TEST(MovingAverageObserverTest, IsTheRecurrence) {
  QuantizeOptions::Observer options;
  options.mutable_moving_average()->set_momentum(0.75);
  const std::unique_ptr<Observer> observer = *MakeObserver(options, QuantizeOptions::U8_AFFINE);
  EXPECT_OK(observer->Observe({-1, 8}));
  EXPECT_OK(observer->Observe({}));  // No sample.
  EXPECT_OK(observer->Observe({-3, 4, 0}));
  EXPECT_OK(observer->Observe({1, 2}));
  EXPECT_EQ(observer->range().min, 0.75 * (0.75 * -1 + 0.25 * -3) + 0.25 * 1);
  EXPECT_EQ(observer->range().max, 0.75 * (0.75 * 8 + 0.25 * 4) + 0.25 * 2);
}

TEST(MovingAverageObserverTest, TheDefaultIsThatOfTorchAo) {
  const Range range = RangeFrom(Kind::kMovingAverage, {{0, 1}, {0, 2}});
  EXPECT_DOUBLE_EQ(range.max, 0.99 * 1 + 0.01 * 2);
}

TEST(MovingAverageObserverTest, DependsOnTheOrder) {
  EXPECT_LT(RangeFrom(Kind::kMovingAverage, {{0, 1}, {0, 2}}).max,
            RangeFrom(Kind::kMovingAverage, {{0, 2}, {0, 1}}).max);
}

// Every value is a multiple of range / 255, so the full range has no error at all, and any other has some.
TEST(SearchTest, KeepsTheFullRangeOfALattice) {
  std::vector<float> positive, affine, symmetric;
  for (int i = 0; i <= 255; ++i) {
    for (int repeat = 0; repeat < 1 + i % 3; ++repeat) {
      positive.push_back(static_cast<float>(i));
      affine.push_back(static_cast<float>(i - 100));
      if (i < 255) symmetric.push_back(static_cast<float>(i - 127));
    }
  }
  for (const Kind kind : {Kind::kMse, Kind::kEntropy}) {
    EXPECT_EQ(RangeFrom(kind, {positive}).max, 255) << kind;
    for (const auto activations : {QuantizeOptions::U8_AFFINE, QuantizeOptions::I8_AFFINE}) {
      EXPECT_EQ(RangeFrom(kind, {affine}, activations).min, -100) << kind;
      EXPECT_EQ(RangeFrom(kind, {affine}, activations).max, 155) << kind;
    }
    EXPECT_EQ(RangeFrom(kind, {symmetric}, QuantizeOptions::I8_SYMMETRIC).min, -127) << kind;
    EXPECT_EQ(RangeFrom(kind, {symmetric}, QuantizeOptions::I8_SYMMETRIC).max, 127) << kind;
  }
}

// Against all pairs of ends on a grid, on the values themselves rather than on a histogram.
TEST(MseObserverTest, NoRangeIsMuchBetter) {
  std::vector<float> skewed = Spread(4000, [](double u) { return LaplaceQuantile(u) * (u < 0.5 ? 0.3 : 1.5) + 0.4; });
  std::vector<float> relu = Spread(4000, LaplaceQuantile);
  for (float& value : relu) value = std::max(value, 0.0f);
  std::vector<float> outlier = Noise(4000, 1, 4);
  outlier[7] = 40;
  for (const std::vector<float>& values : {skewed, relu, outlier, Noise(3000, 2, 1)}) {
    const Range full = *FiniteRange(values);
    for (const auto activations : kActivations) {
      double least = SquaredErrorOf(values, full, activations);
      for (int low = 1; low <= 40; ++low) {
        for (int high = 1; high <= 40; ++high) {
          const Range range = {full.min * low / 40, full.max * high / 40};
          least = std::min(least, SquaredErrorOf(values, range, activations));
        }
      }
      EXPECT_LE(SquaredErrorOf(values, RangeFrom(Kind::kMse, {values}, activations), activations), least * 1.02);
    }
  }
}

// The error of clipping a Laplace distribution at t is 2 exp(-t), that of rounding step^2 / 12 with step = t / 127
// (Banner et al., "Post training 4-bit quantization", NeurIPS 2019); their sum is least at exp(-t) = t / (12 * 127^2).
TEST(MseObserverTest, ClipsALaplaceDistributionWhereTheoryDoes) {
  double theory = 10;
  for (int i = 0; i < 100; ++i) theory = std::log(12.0 * 127 * 127 / theory);
  const std::vector<float> values = Spread(1'000'000, LaplaceQuantile);
  const Range range = RangeFrom(Kind::kMse, {values}, QuantizeOptions::I8_SYMMETRIC);
  EXPECT_NEAR(range.max, theory, 0.25);
  EXPECT_NEAR(range.min, -theory, 0.25);
  EXPECT_GT(*std::max_element(values.begin(), values.end()), 13);
}

// KL(P || Q) for saturation at `range`, from bins in a map and without any of the observer's code.
double DivergenceOf(const std::vector<float>& values, Range range, QuantizeOptions::Activations activations,
                    double bin_width) {
  const Codes codes = ActivationCodes(range, activations);
  const IntegerRange limits = RangeOf(codes.dtype);
  std::map<int64_t, double> all;
  const Range full = *FiniteRange(values);
  for (const float value : values) {
    if (value != 0) ++all[static_cast<int64_t>(std::floor(value / bin_width))];
  }
  std::map<int64_t, double> p;
  std::map<double, std::vector<int64_t>> bins_of_code;
  double below = 0, above = 0;
  for (const auto& [bin, count] : all) {
    const double middle = std::clamp((static_cast<double>(bin) + 0.5) * bin_width, full.min, full.max);
    const double code = CodeOf(middle, codes);
    if (code < limits.min) {
      below += count;
    } else if (code > limits.max) {
      above += count;
    } else {
      p[bin] = count;
      bins_of_code[code].push_back(bin);
    }
  }
  std::map<int64_t, double> q;
  for (const auto& [code, bins] : bins_of_code) {
    double sum = 0;
    for (const int64_t bin : bins) sum += p[bin];
    for (const int64_t bin : bins) q[bin] = sum / static_cast<double>(bins.size());
  }
  p.begin()->second += below;
  p.rbegin()->second += above;
  double p_total = 0, q_total = 0, divergence = 0;
  for (const auto& [bin, mass] : p) {
    p_total += mass;
    q_total += q[bin];
  }
  for (const auto& [bin, mass] : p) divergence += mass / p_total * std::log(mass / p_total / (q[bin] / q_total));
  return divergence;
}

TEST(NaturalLogTest, IsNearTheCLibrarys) {
  for (double x = 1e-320; x < 1e308; x *= 1.0371) {
    ASSERT_LE(std::fabs(NaturalLog(x) - std::log(x)), 0x1p-51 * std::max(1.0, std::fabs(std::log(x)))) << x;
  }
  EXPECT_EQ(NaturalLog(1), 0);
}

TEST(EntropyObserverTest, NoMagnitudeIsBetter) {
  std::vector<float> relu = Spread(20000, LaplaceQuantile);
  for (float& value : relu) value = std::max(value, 0.0f);
  std::vector<float> outlier = Noise(20000, 1, 4);
  outlier[7] = 9;
  for (const std::vector<float>& values : {Spread(20000, LaplaceQuantile), relu, outlier}) {
    const Range full = *FiniteRange(values);
    Histogram histogram;
    histogram.Add(values, full);
    const double largest = std::max(-full.min, full.max);
    for (const auto activations : kActivations) {
      const auto divergence = [&](Range range) {
        return DivergenceOf(values, range, activations, histogram.bin_width());
      };
      double least = divergence(full);
      for (int i = 1; i < 256; ++i) {
        const Range range = {std::max(full.min, -largest * i / 256), std::min(full.max, largest * i / 256)};
        if (ActivationCodes(range, activations).scale < histogram.bin_width()) continue;
        least = std::min(least, divergence(range));
      }
      EXPECT_NEAR(divergence(RangeFrom(Kind::kEntropy, {values}, activations)), least, 1e-12);
    }
  }
}

TEST(EntropyObserverTest, CutsOffALonelyOutlier) {
  std::vector<float> values = Spread(100'000, LaplaceQuantile);
  for (float& value : values) value = std::fabs(value);
  values.push_back(50);
  const double found = RangeFrom(Kind::kEntropy, {values}).max;
  EXPECT_LT(found, 25);
  EXPECT_GT(found, 6);  // exp(-6): a four-hundredth of all values.
}

TEST(ObserverTest, EveryMethodTakesAwkwardInputs) {
  constexpr float kTiny = std::numeric_limits<float>::denorm_min();
  constexpr float kMax = std::numeric_limits<float>::max();
  const std::vector<std::vector<float>> inputs = {
      {0, 0, 0},  {-0.0f},         {3},          {-2, -2},         {kTiny},    {kMax, -kMax},  {1, 1e30f},
      {-1, 0, 1}, {-5, -4, -3, 0}, {2, 3, 3, 3}, {1e-20f, 2e-20f}, {0, kTiny}, {-1e30f, 0.5f}, {0, 0, 0, 7}};
  for (const Kind kind : kKinds) {
    for (const auto activations : kActivations) {
      for (const std::vector<float>& input : inputs) {
        const Range full = *FiniteRange(input);
        const Range range = RangeFrom(kind, {{}, input, {}}, activations);
        EXPECT_LE(range.min, range.max);
        EXPECT_GE(range.min, std::min(full.min, 0.0)) << kind;
        EXPECT_LE(range.max, std::max(full.max, 0.0)) << kind;
        if (full.min == full.max) {
          EXPECT_EQ(range.min, full.min) << kind << ": a constant is all there is to cover";
          EXPECT_EQ(range.max, full.max) << kind;
        }
        EXPECT_TRUE(std::isnormal(ActivationCodes(range, activations).scale));
      }
      const Range none = RangeFrom(kind, {{}}, activations);
      EXPECT_EQ(none.min, 0);
      EXPECT_EQ(none.max, 0);
    }
  }
}

TEST(ObserverTest, OnlyTheMovingAverageSeesTheOrderOfSamples) {
  std::vector<std::vector<float>> samples;
  for (uint32_t i = 0; i < 9; ++i) samples.push_back(Noise(500, i, 1 + i * 7 % 9));
  const std::vector<std::vector<float>> reversed(samples.rbegin(), samples.rend());
  std::vector<float> joined;
  for (const std::vector<float>& sample : samples) joined.insert(joined.end(), sample.begin(), sample.end());
  for (const Kind kind : kKinds) {
    if (kind == Kind::kMovingAverage) continue;
    for (const auto activations : kActivations) {
      const Range forward = RangeFrom(kind, samples, activations);
      for (const auto& other : {reversed, {joined}}) {
        const Range found = RangeFrom(kind, other, activations);
        EXPECT_EQ(found.min, forward.min) << kind;
        EXPECT_EQ(found.max, forward.max) << kind;
      }
    }
  }
}

// The state and range of an observer into which observers of the parts are merged, in this order or the opposite one.
std::pair<ObserverState, Range> Merged(const std::unique_ptr<Observer>& merged,
                                       std::vector<std::unique_ptr<Observer>> parts,
                                       const std::vector<std::vector<float>>& samples, bool backwards) {
  // Each part sees its samples from the last to the first.
  for (int i = static_cast<int>(samples.size()) - 1; i >= 0; --i) {
    EXPECT_OK(parts[i * 5 % parts.size()]->Observe(samples[i], i));
  }
  if (backwards) std::reverse(parts.begin(), parts.end());
  for (const std::unique_ptr<Observer>& part : parts) {
    ObserverState read;  // As from a file.
    EXPECT_TRUE(read.ParseFromString(part->State().SerializeAsString()));
    EXPECT_OK(merged->Merge(read));
  }
  return {merged->State(), merged->range()};
}

TEST(ObserverTest, MergedPartsAreTheWholeToTheBit) {
  std::vector<std::vector<float>> many = {{-0.0f}, {0.0f, -0.0f}, {}, {3}, {1e30f, -2}, {0, 1e-40f}};
  for (uint32_t i = 0; i < 24; ++i)
    many.push_back(Noise(200 + i, i, std::ldexp(1.0, static_cast<int>(i * 7 % 12) - 6)));
  const std::vector<std::vector<std::vector<float>>> sets = {many, {many[9]}, {{-0.0f}, {0.0f}}, {{2.5f}, {2.5f}},
                                                             {{}}, {}};
  for (const Kind kind : kKinds) {
    for (const auto activations : kActivations) {
      for (const std::vector<std::vector<float>>& samples : sets) {
        const auto make = [&] { return *MakeObserver(Options(kind), activations); };
        const std::unique_ptr<Observer> whole = make();
        for (size_t i = 0; i < samples.size(); ++i) EXPECT_OK(whole->Observe(samples[i], static_cast<int>(i)));
        const std::string state = whole->State().SerializeAsString();
        const Range range = whole->range();
        for (const int count : {1, 2, 7}) {
          for (const bool backwards : {false, true}) {
            std::vector<std::unique_ptr<Observer>> parts;
            for (int i = 0; i < count; ++i) parts.push_back(make());
            const auto [merged, found] = Merged(make(), std::move(parts), samples, backwards);
            EXPECT_EQ(std::memcmp(&found, &range, sizeof range), 0)
                << kind << ", " << count << " parts: [" << found.min << ", " << found.max << "], not [" << range.min
                << ", " << range.max << "]";
            EXPECT_EQ(merged.SerializeAsString(), state) << kind << ", " << count << " parts";
          }
        }
      }
    }
  }
}

TEST(ObserverTest, MergesNothingThatNoObserverSays) {
  const double kNan = std::nan(""), kInfinity = std::numeric_limits<double>::infinity();
  for (const Kind kind : kKinds) {
    const std::unique_ptr<Observer> observer = *MakeObserver(Options(kind), QuantizeOptions::U8_AFFINE);
    EXPECT_OK(observer->Observe({-1, 2}));
    const Range before = observer->range();
    for (const Range wrong : {Range{kNan, 1}, Range{0, kInfinity}, Range{2, 1}}) {
      ObserverState state = observer->State();
      ObserverState::Ends* ends = state.has_min_max()          ? state.mutable_min_max()->mutable_ends()
                                  : state.has_moving_average() ? state.mutable_moving_average()->mutable_ends(0)
                                                               : state.mutable_histogram()->mutable_ends();
      ends->set_min(wrong.min);
      ends->set_max(wrong.max);
      EXPECT_THAT(observer->Merge(state),
                  StatusIs(absl::StatusCode::kDataLoss, HasSubstr("an observer has seen values from")));
    }
    EXPECT_EQ(observer->range().min, before.min);
    EXPECT_EQ(observer->range().max, before.max);
  }
}

TEST(MakeObserverTest, RejectsOptions) {
  for (const double percent : {-1.0, 50.0, 100.5, std::nan("")}) {
    QuantizeOptions::Observer options;
    options.mutable_percentile()->set_percent(percent);
    EXPECT_THAT(MakeObserver(options, QuantizeOptions::U8_AFFINE),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("wanted more than 50")));
  }
  for (const double momentum : {-0.1, 1.0, 2.0, std::nan("")}) {
    QuantizeOptions::Observer options;
    options.mutable_moving_average()->set_momentum(momentum);
    EXPECT_THAT(MakeObserver(options, QuantizeOptions::U8_AFFINE),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("wanted more than 0, less than 1")));
  }
}

// Rows of `features`, in which feature i has magnitudes of up to i + 1, the last ones being of the other sign.
std::vector<float> RowsOf(int rows, int features) {
  std::vector<float> values;
  for (int row = 0; row < rows; ++row) {
    for (int i = 0; i < features; ++i) values.push_back((i < features / 2 ? 1 : -1) * (row % 3 * 0.5f * (i + 1)));
  }
  return values;
}

TEST(MedianFeatureTest, IsTheMiddleOneByExtent) {
  MedianFeatureObserver observer(5);
  ASSERT_OK(observer.Observe(RowsOf(40, 5)));
  EXPECT_EQ(observer.range().min, -3);  // Of 1, 2, -3, -4, -5.
  EXPECT_EQ(observer.range().max, 0);   // 0 is in it, though no value need be.
  ASSERT_OK(observer.Observe({1, 2, 9, 4, 5}));
  EXPECT_EQ(observer.range().min, -4);  // Of 1, 2, [-3, 9], [-4, 4], [-5, 5] the middle one is [-4, 4].
  EXPECT_EQ(observer.range().max, 4);
}

TEST(MedianFeatureTest, OfFewRowsIsTheRangeOfAll) {
  MedianFeatureObserver observer(5);
  EXPECT_EQ(observer.range().max, 0);
  ASSERT_OK(observer.Observe(RowsOf(MedianFeatureObserver::kLeastRows - 1, 5)));
  EXPECT_EQ(observer.range().min, -5);
  EXPECT_EQ(observer.range().max, 2);
  ASSERT_OK(observer.Observe(RowsOf(1, 5)));
  EXPECT_EQ(observer.range().min, -3);
}

TEST(MedianFeatureTest, MergesToTheSame) {
  const std::vector<float> values = Noise(7 * 100, 5, 3);
  MedianFeatureObserver whole(7), first(7), second(7);
  ASSERT_OK(whole.Observe(values));
  ASSERT_OK(first.Observe(absl::MakeSpan(values).first(7 * 31)));
  ASSERT_OK(second.Observe(absl::MakeSpan(values).subspan(7 * 31)));
  for (auto [into, from] : {std::make_pair(&first, &second), std::make_pair(&second, &first)}) {
    MedianFeatureObserver merged(7);
    ASSERT_OK(merged.Merge(into->State()));
    ASSERT_OK(merged.Merge(from->State()));
    EXPECT_EQ(merged.range().min, whole.range().min);
    EXPECT_EQ(merged.range().max, whole.range().max);
  }
  EXPECT_THAT(MedianFeatureObserver(6).Merge(whole.State()),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("7 features, wanted 6")));
  EXPECT_THAT(whole.Merge(MinMaxObserver().State()), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("0 features")));
}

}  // namespace
}  // namespace fuselage::quantize
