#include "passes/quantize/observers.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/base/quant_params.h"

namespace fuselage::quantize {
namespace {

// Below the exponent of the smallest normal float nothing is worth telling apart.
constexpr int kSmallestExponent = -126;

// floor(scaled), for |scaled| < 2^52. Scaling a float by a power of two is exact in double, so bins are exact.
int64_t BinOf(double scaled) {
  const int64_t truncated = static_cast<int64_t>(scaled);
  return truncated - (scaled < static_cast<double>(truncated) ? 1 : 0);
}

bool Fits(Range range, int exponent) {
  const double min = std::ldexp(range.min, -exponent), max = std::ldexp(range.max, -exponent);
  return std::max(std::fabs(min), std::fabs(max)) < 0x1p52 && BinOf(max) - BinOf(min) < Histogram::kBins;
}

}  // namespace

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

absl::Status Observer::Observe(absl::Span<const float> values) {
  if (values.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Range range, FiniteRange(values));
  Take(values, range);
  return absl::OkStatus();
}

void MinMaxObserver::Take(absl::Span<const float>, Range range) {
  range_ = empty_ ? range : Range{std::min(range_.min, range.min), std::max(range_.max, range.max)};
  empty_ = false;
}

void Histogram::Cover(Range range) {
  if (counts_.empty()) {
    exponent_ = kSmallestExponent;
    // A guess from below; the loop finds the smallest exponent that fits.
    const double largest = std::max(std::fabs(range.min), std::fabs(range.max));
    const double width = std::max(range.max - range.min, largest * 0x1p-52);
    if (width > 0) exponent_ = std::max(kSmallestExponent, std::ilogb(width) - 13);
    while (!Fits(range, exponent_)) ++exponent_;
    counts_.assign(kBins, 0);
    first_ = BinOf(std::ldexp(range.min, -exponent_));
    range_ = range;
    return;
  }
  const int64_t old_first = first_;
  const int old_exponent = exponent_;
  range_ = {std::min(range_.min, range.min), std::max(range_.max, range.max)};
  while (!Fits(range_, exponent_)) ++exponent_;
  first_ = BinOf(std::ldexp(range_.min, -exponent_));
  if (first_ == old_first && exponent_ == old_exponent) return;
  std::vector<int64_t> moved(kBins, 0);
  const int shift = std::min(exponent_ - old_exponent, 62);
  for (int i = 0; i < kBins; ++i) {
    if (counts_[i] != 0) moved[((old_first + i) >> shift) - first_] += counts_[i];
  }
  counts_ = std::move(moved);
}

void Histogram::Add(absl::Span<const float> values, Range range) {
  Cover(range);
  total_ += static_cast<int64_t>(values.size());
  const double scale = std::ldexp(1.0, -exponent_);
  int64_t* counts = counts_.data();
  for (const float value : values) ++counts[BinOf(value * scale) - first_];
}

double Histogram::Quantile(double fraction) const {
  const double wanted = fraction * static_cast<double>(total_);
  double below = 0;
  for (int i = 0; i < static_cast<int>(counts_.size()); ++i) {
    const double count = static_cast<double>(counts_[i]);
    if (count > 0 && below + count >= wanted) {
      const double bin = static_cast<double>(first_ + i) + std::max(0.0, wanted - below) / count;
      return std::clamp(std::ldexp(bin, exponent_), range_.min, range_.max);
    }
    below += count;
  }
  return range_.max;
}

Range PercentileObserver::range() const {
  return {histogram_.Quantile(1 - percent_ / 100), histogram_.Quantile(percent_ / 100)};
}

absl::StatusOr<std::unique_ptr<Observer>> MakeObserver(const QuantizeOptions::Observer& options) {
  if (options.kind_case() != QuantizeOptions::Observer::kPercentile) return std::make_unique<MinMaxObserver>();
  const double percent = options.percentile().percent() == 0 ? 99.99 : options.percentile().percent();
  if (!(percent > 50 && percent <= 100)) {
    return absl::InvalidArgumentError(
        absl::StrCat("observer.percentile.percent is ", ShortestText(percent), ", wanted more than 50, at most 100"));
  }
  return std::make_unique<PercentileObserver>(percent);
}

}  // namespace fuselage::quantize
