// A histogram of values that are seen once: its memory does not grow with their number, and it does not depend on their
// order, nor on how they were divided among histograms that are merged.
#ifndef FUSELAGE_PASSES_QUANTIZE_HISTOGRAM_H_
#define FUSELAGE_PASSES_QUANTIZE_HISTOGRAM_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "passes/quantize/scales.h"

namespace fuselage::quantize {

// Counts of values in kBins bins of equal width. The width is a power of two and bin edges are multiples of it, so that
// growing the range merges neighbours exactly: the counts are those of a histogram that knew the whole range before.
class Histogram {
 public:
  static constexpr int kBins = 4096;

  struct Bin {
    double middle;  // Inside range().
    int64_t count;
  };

  // `range` is that of `values`.
  void Add(absl::Span<const float> values, Range range);

  // Adds what another histogram counted, by what it says of itself below. DataLoss where no histogram says that.
  absl::Status Merge(Range range, absl::Span<const int64_t> counts, int64_t zeros);

  // How many values each bin has, from the bin of the smallest value to that of the largest, which range() tells.
  absl::Span<const int64_t> counts() const;
  int64_t zeros() const { return zeros_; }  // How many values are exactly zero; they have a bin, too.
  int64_t total() const { return total_; }
  Range range() const { return range_; }  // All values lie in it: exact.
  double bin_width() const;

  // Those that are not empty, in order. Exact zeros are left out: every code has them for free.
  std::vector<Bin> NonZeroBins() const;

  // The value below which `fraction` of all values lie; interpolated within its bin, and inside range().
  double Quantile(double fraction) const;

 private:
  void Cover(Range range);
  // `counts` of bins from `first` on, which are no wider than these and lie inside.
  void AddBins(absl::Span<const int64_t> counts, int64_t first, int exponent);

  std::vector<int64_t> counts_;  // Bin i holds [first_ + i, first_ + i + 1) * 2^exponent_.
  int64_t first_ = 0;
  int exponent_ = 0;
  int64_t total_ = 0, zeros_ = 0;
  Range range_;
};

}  // namespace fuselage::quantize

#endif  // FUSELAGE_PASSES_QUANTIZE_HISTOGRAM_H_
