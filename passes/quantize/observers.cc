#include "passes/quantize/observers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/base/quant_params.h"

namespace fuselage::quantize {
namespace {

using Bins = std::vector<Histogram::Bin>;

// Codes without their offset: x is stored as Steps(x), clamped to [lowest, highest], in steps of `scale`.
struct Grid {
  explicit Grid(const Codes& codes) : scale(codes.scale) {
    const IntegerRange limits = RangeOf(codes.dtype);
    lowest = static_cast<double>(limits.min) - codes.zero_point;
    highest = static_cast<double>(limits.max) - codes.zero_point;
  }
  double Steps(double x) const { return std::nearbyint(x / scale); }

  double scale, lowest, highest;
};

double SquaredError(const Bins& bins, const Grid& grid) {
  double sum = 0;
  for (const Histogram::Bin& bin : bins) {
    const double steps = std::clamp(grid.Steps(bin.middle), grid.lowest, grid.highest);
    const double error = bin.middle - steps * grid.scale;
    sum += static_cast<double>(bin.count) * error * error;
  }
  return sum;
}

// KL(P || Q); infinite where everything saturates.
double Divergence(const Bins& bins, const Grid& grid) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  struct Level {
    double count = 0;  // What Q counts here.
    int bins = 0;
  };
  std::array<Level, 256> levels;
  size_t first = bins.size(), last = 0;
  double below = 0, above = 0, inside = 0;
  for (size_t i = 0; i < bins.size(); ++i) {
    const double count = static_cast<double>(bins[i].count), steps = grid.Steps(bins[i].middle);
    if (steps < grid.lowest) {
      below += count;
    } else if (steps > grid.highest) {
      above += count;
    } else {
      Level& level = levels[static_cast<int>(steps - grid.lowest)];
      level.count += count;
      ++level.bins;
      inside += count;
      first = std::min(first, i);
      last = i;
    }
  }
  if (first == bins.size()) return kInfinity;
  const double total = inside + below + above;
  double divergence = 0;
  for (size_t i = first; i <= last; ++i) {
    const Level& level = levels[static_cast<int>(grid.Steps(bins[i].middle) - grid.lowest)];
    const double count = static_cast<double>(bins[i].count) + (i == first ? below : 0) + (i == last ? above : 0);
    const double p = count / total, q = level.count / level.bins / inside;
    divergence += p * NaturalLog(p / q);
  }
  return divergence;
}

// The largest candidate with the least cost(fraction), where fractions are i / kCandidates.
template <typename Cost>
double BestFraction(Cost cost) {
  double best = 1, least = cost(1.0);
  for (int i = kCandidates - 1; i > 0; --i) {
    const double fraction = static_cast<double>(i) / kCandidates, found = cost(fraction);
    if (!(found < least)) continue;
    best = fraction;
    least = found;
  }
  return best;
}

ObserverState::Ends EndsOf(Range range) {
  ObserverState::Ends ends;
  ends.set_min(range.min);
  ends.set_max(range.max);
  return ends;
}

absl::StatusOr<Range> RangeOf(const ObserverState::Ends& ends) {
  if (std::isfinite(ends.min()) && std::isfinite(ends.max()) && ends.min() <= ends.max()) {
    return Range{ends.min(), ends.max()};
  }
  return absl::DataLossError(
      absl::StrCat("an observer has seen values from ", ShortestText(ends.min()), " to ", ShortestText(ends.max())));
}

// For ranges with 0 inside.
double Magnitude(Range range) { return std::max(-range.min, range.max); }
Range Clipped(Range range, double magnitude) {
  return {std::max(range.min, -magnitude), std::min(range.max, magnitude)};
}

}  // namespace

double NaturalLog(double x) {
  // ln(m * 2^e) = 2 atanh((m - 1) / (m + 1)) + e ln 2, for m in [sqrt(1/2), sqrt(2)): |f| < 0.172, and what is left of
  // the series for atanh is below 2^-55 of it.
  constexpr double kCoefficients[] = {1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11,
                                      1.0 / 9,  1.0 / 7,  1.0 / 5,  1.0 / 3,  1.0};
  int exponent;
  double m = std::frexp(x, &exponent);
  if (m < M_SQRT1_2) {
    m *= 2;
    --exponent;
  }
  const double f = (m - 1) / (m + 1);
  double series = 0;
  for (const double coefficient : kCoefficients) series = series * (f * f) + coefficient;
  return 2 * f * series + exponent * M_LN2;
}

absl::StatusOr<Range> FiniteRange(absl::Span<const float> values) {
  // Independent lanes: one running minimum would wait for itself at every element.
  constexpr size_t kLanes = 8;
  constexpr float kLargest = std::numeric_limits<float>::max();
  float low[kLanes], high[kLanes];
  uint32_t finite[kLanes];
  std::fill(low, low + kLanes, values[0]);
  std::fill(high, high + kLanes, values[0]);
  std::fill(finite, finite + kLanes, 1);
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const float value = values[i + lane];
      low[lane] = value < low[lane] ? value : low[lane];
      high[lane] = value > high[lane] ? value : high[lane];
      finite[lane] &= static_cast<uint32_t>(std::fabs(value) <= kLargest);
    }
  }
  for (; i < values.size(); ++i) {
    low[0] = std::min(low[0], values[i]);
    high[0] = std::max(high[0], values[i]);
    finite[0] &= static_cast<uint32_t>(std::fabs(values[i]) <= kLargest);
  }
  if (*std::min_element(finite, finite + kLanes) == 0) {
    const auto found = std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
    return absl::InvalidArgumentError(absl::StrCat("element ", found - values.begin(), " is ", ShortestText(*found)));
  }
  return Range{*std::min_element(low, low + kLanes), *std::max_element(high, high + kLanes)};
}

absl::Status Observer::Observe(absl::Span<const float> values, int sample) {
  if (values.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Range range, FiniteRange(values));
  // Zeros of one sign: which of -0 and 0 is the smaller would depend on which came first.
  Take(values, {range.min + 0.0, range.max + 0.0}, sample);
  return absl::OkStatus();
}

ObserverState MinMaxObserver::State() const {
  ObserverState state;
  state.mutable_min_max();
  if (range_.has_value()) *state.mutable_min_max()->mutable_ends() = EndsOf(*range_);
  return state;
}

absl::Status MinMaxObserver::Merge(const ObserverState& state) {
  if (!state.min_max().has_ends()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Range range, RangeOf(state.min_max().ends()));
  Take({}, range, 0);
  return absl::OkStatus();
}

void MinMaxObserver::Take(absl::Span<const float>, Range range, int /*sample*/) {
  range_ = range_.has_value() ? Union(*range_, range) : range;
}

ObserverState MovingAverageObserver::State() const {
  ObserverState state;
  state.mutable_moving_average();
  for (const auto& [sample, range] : ranges_) {
    ObserverState::Ends& ends = *state.mutable_moving_average()->add_ends();
    ends = EndsOf(range);
    ends.set_sample(sample);
  }
  return state;
}

absl::Status MovingAverageObserver::Merge(const ObserverState& state) {
  for (const ObserverState::Ends& ends : state.moving_average().ends()) {
    ASSIGN_OR_RETURN(const Range range, RangeOf(ends));
    Take({}, range, ends.sample());
  }
  return absl::OkStatus();
}

void MovingAverageObserver::Take(absl::Span<const float>, Range range, int sample) { ranges_.emplace(sample, range); }

Range MovingAverageObserver::range() const {
  if (ranges_.empty()) return {};
  Range average = ranges_.begin()->second;
  // Moved by a part of the difference: a constant stays what it is.
  for (const auto& [sample, range] : ranges_) {
    average.min += (1 - momentum_) * (range.min - average.min);
    average.max += (1 - momentum_) * (range.max - average.max);
  }
  return average;
}

ObserverState HistogramObserver::State() const {
  ObserverState state;
  const absl::Span<const int64_t> counts = histogram_.counts();
  *state.mutable_histogram()->mutable_ends() = EndsOf(histogram_.range());
  state.mutable_histogram()->mutable_counts()->Add(counts.begin(), counts.end());
  state.mutable_histogram()->set_zeros(histogram_.zeros());
  return state;
}

absl::Status HistogramObserver::Merge(const ObserverState& state) {
  ASSIGN_OR_RETURN(const Range range, RangeOf(state.histogram().ends()));
  return histogram_.Merge(range, state.histogram().counts(), state.histogram().zeros());
}

Range PercentileObserver::range() const {
  return {histogram().Quantile(1 - percent_ / 100), histogram().Quantile(percent_ / 100)};
}

Range MseObserver::range() const {
  if (histogram().range().min == histogram().range().max) return histogram().range();
  const Range full = Union(histogram().range(), {0, 0});
  const Bins bins = histogram().NonZeroBins();
  const auto error = [&](Range range) { return SquaredError(bins, Grid(ActivationCodes(range, activations_))); };
  if (activations_ == QuantizeOptions::I8_SYMMETRIC) {
    const double largest = Magnitude(full);
    return Clipped(full, largest * BestFraction([&](double part) { return error(Clipped(full, largest * part)); }));
  }
  // The error of the best so far falls with every round that moves an end, so this ends.
  Range best = full;
  while (true) {
    Range next = best;
    next.max = full.max * BestFraction([&](double part) { return error({next.min, full.max * part}); });
    next.min = full.min * BestFraction([&](double part) { return error({full.min * part, next.max}); });
    if (!(error(next) < error(best))) return best;
    best = next;
  }
}

Range EntropyObserver::range() const {
  if (histogram().range().min == histogram().range().max) return histogram().range();
  const Range full = Union(histogram().range(), {0, 0});
  const Bins bins = histogram().NonZeroBins();
  const double largest = Magnitude(full), bin_width = histogram().bin_width();
  return Clipped(full, largest * BestFraction([&](double part) {
                         const Grid grid(ActivationCodes(Clipped(full, largest * part), activations_));
                         if (part < 1 && grid.scale < bin_width) return std::numeric_limits<double>::infinity();
                         return Divergence(bins, grid);
                       }));
}

void MedianFeatureObserver::Take(absl::Span<const float> values, Range /*range*/, int /*sample*/) {
  const size_t features = ranges_.size(), rows = values.size() / features;
  std::vector<float> low(features), high(features);
  for (size_t row = 0; row < rows; ++row) {
    const float* x = values.data() + row * features;
    for (size_t i = 0; i < features; ++i) {
      low[i] = std::min(low[i], x[i]);
      high[i] = std::max(high[i], x[i]);
    }
  }
  for (size_t i = 0; i < features; ++i) ranges_[i] = Union(ranges_[i], {low[i], high[i]});
  rows_ += static_cast<int64_t>(rows);
}

ObserverState MedianFeatureObserver::State() const {
  ObserverState state;
  auto* features = state.mutable_features();
  for (const Range& range : ranges_) {
    features->add_min(range.min);
    features->add_max(range.max);
  }
  features->set_rows(rows_);
  return state;
}

absl::Status MedianFeatureObserver::Merge(const ObserverState& state) {
  const int wanted = static_cast<int>(ranges_.size());
  const ObserverState::Features& features = state.features();
  if (features.min_size() != wanted || features.max_size() != wanted || features.rows() < 0) {
    return absl::DataLossError(
        absl::StrCat("an observer has seen ", features.min_size(), " features, wanted ", wanted));
  }
  for (int i = 0; i < wanted; ++i) {
    ObserverState::Ends ends;
    ends.set_min(features.min(i));
    ends.set_max(features.max(i));
    ASSIGN_OR_RETURN(const Range range, RangeOf(ends));
    ranges_[i] = Union(ranges_[i], range);
  }
  rows_ += features.rows();
  return absl::OkStatus();
}

Range MedianFeatureObserver::range() const {
  if (ranges_.empty()) return {};
  std::vector<Range> ranges = ranges_;
  if (rows_ < kLeastRows) return std::accumulate(ranges.begin(), ranges.end(), Range(), Union);
  const auto median = ranges.begin() + static_cast<std::ptrdiff_t>(ranges.size() / 2);
  std::nth_element(ranges.begin(), median, ranges.end(),
                   [](const Range& a, const Range& b) { return a.max - a.min < b.max - b.min; });
  return *median;
}

QuantizeOptions::Observer WithDefaults(QuantizeOptions::Observer options) {
  if (options.kind_case() == QuantizeOptions::Observer::KIND_NOT_SET) options.mutable_mse();
  if (options.has_percentile() && options.percentile().percent() == 0) options.mutable_percentile()->set_percent(99.99);
  // 1 - the averaging constant of torch.ao's MovingAverageMinMaxObserver.
  if (options.has_moving_average() && options.moving_average().momentum() == 0) {
    options.mutable_moving_average()->set_momentum(0.99);
  }
  return options;
}

absl::StatusOr<std::unique_ptr<Observer>> MakeObserver(const QuantizeOptions::Observer& options,
                                                       QuantizeOptions::Activations activations) {
  const QuantizeOptions::Observer complete = WithDefaults(options);
  switch (complete.kind_case()) {
    case QuantizeOptions::Observer::kPercentile: {
      const double percent = complete.percentile().percent();
      if (percent > 50 && percent <= 100) return std::make_unique<PercentileObserver>(percent);
      return absl::InvalidArgumentError(
          absl::StrCat("observer.percentile.percent is ", ShortestText(percent), ", wanted more than 50, at most 100"));
    }
    case QuantizeOptions::Observer::kMovingAverage: {
      const double momentum = complete.moving_average().momentum();
      if (momentum > 0 && momentum < 1) return std::make_unique<MovingAverageObserver>(momentum);
      return absl::InvalidArgumentError(absl::StrCat("observer.moving_average.momentum is ", ShortestText(momentum),
                                                     ", wanted more than 0, less than 1"));
    }
    case QuantizeOptions::Observer::kMinMax: return std::make_unique<MinMaxObserver>();
    case QuantizeOptions::Observer::kEntropy: return std::make_unique<EntropyObserver>(activations);
    case QuantizeOptions::Observer::kMse:
    case QuantizeOptions::Observer::KIND_NOT_SET: break;
  }
  return std::make_unique<MseObserver>(activations);
}

}  // namespace fuselage::quantize
