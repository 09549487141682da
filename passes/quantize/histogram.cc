#include "passes/quantize/histogram.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"

namespace fuselage::quantize {
namespace {

// Below the exponent of the smallest normal float nothing is worth telling apart.
constexpr int kSmallestExponent = -126;

// floor(scaled), for |scaled| < 2^52. Scaling a float by a power of two is exact in double, so bins are exact.
int64_t BinOf(double scaled) {
  const int64_t truncated = static_cast<int64_t>(scaled);
  return truncated - (scaled < static_cast<double>(truncated) ? 1 : 0);
}

// The bin of a value, in bins that are 2^exponent wide.
int64_t BinOf(double value, int exponent) { return BinOf(std::ldexp(value, -exponent)); }

bool Fits(Range range, int exponent) {
  const double min = std::ldexp(range.min, -exponent), max = std::ldexp(range.max, -exponent);
  return std::max(std::fabs(min), std::fabs(max)) < 0x1p52 && BinOf(max) - BinOf(min) < Histogram::kBins;
}

// The smallest whose bins fit.
int ExponentOf(Range range) {
  // A guess from below.
  const double largest = std::max(std::fabs(range.min), std::fabs(range.max));
  const double width = std::max(range.max - range.min, largest * 0x1p-52);
  int exponent = width > 0 ? std::max(kSmallestExponent, std::ilogb(width) - 13) : kSmallestExponent;
  while (!Fits(range, exponent)) ++exponent;
  return exponent;
}

}  // namespace

void Histogram::AddBins(absl::Span<const int64_t> counts, int64_t first, int exponent) {
  const int shift = std::min(exponent_ - exponent, 62);
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] != 0) counts_[((first + static_cast<int64_t>(i)) >> shift) - first_] += counts[i];
  }
}

void Histogram::Cover(Range range) {
  range_ = counts_.empty() ? range : Union(range_, range);
  const int exponent = ExponentOf(range_);
  const int64_t first = BinOf(range_.min, exponent);
  if (!counts_.empty() && first == first_ && exponent == exponent_) return;
  const std::vector<int64_t> old = std::exchange(counts_, std::vector<int64_t>(kBins, 0));
  const int64_t old_first = std::exchange(first_, first);
  const int old_exponent = std::exchange(exponent_, exponent);
  AddBins(old, old_first, old_exponent);
}

absl::Status Histogram::Merge(Range range, absl::Span<const int64_t> counts, int64_t zeros) {
  if (counts.empty()) return absl::OkStatus();
  const int exponent = ExponentOf(range);
  const int64_t first = BinOf(range.min, exponent), bins = BinOf(range.max, exponent) - first + 1;
  if (static_cast<int64_t>(counts.size()) != bins) {
    return absl::DataLossError(absl::StrCat("a histogram has ", counts.size(), " bins, wanted ", bins));
  }
  Cover(range);
  AddBins(counts, first, exponent);
  total_ += std::accumulate(counts.begin(), counts.end(), int64_t{0});
  zeros_ += zeros;
  return absl::OkStatus();
}

absl::Span<const int64_t> Histogram::counts() const {
  if (counts_.empty()) return {};
  return absl::MakeConstSpan(counts_).first(BinOf(range_.max, exponent_) - first_ + 1);
}

void Histogram::Add(absl::Span<const float> values, Range range) {
  Cover(range);
  total_ += static_cast<int64_t>(values.size());
  const double scale = std::ldexp(1.0, -exponent_);
  int64_t* counts = counts_.data();
  int64_t zeros = 0;
  for (const float value : values) {
    ++counts[BinOf(value * scale) - first_];
    zeros += value == 0;
  }
  zeros_ += zeros;
}

double Histogram::bin_width() const { return std::ldexp(1.0, exponent_); }

std::vector<Histogram::Bin> Histogram::NonZeroBins() const {
  std::vector<Bin> bins;
  for (int i = 0; i < static_cast<int>(counts_.size()); ++i) {
    const int64_t count = counts_[i] - (first_ + i == 0 ? zeros_ : 0);
    const double middle = std::ldexp(static_cast<double>(first_ + i) + 0.5, exponent_);
    if (count > 0) bins.push_back({std::clamp(middle, range_.min, range_.max), count});
  }
  return bins;
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

}  // namespace fuselage::quantize
