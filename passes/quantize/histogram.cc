#include "passes/quantize/histogram.h"

#include <algorithm>
#include <cmath>

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
  range_ = Union(range_, range);
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
