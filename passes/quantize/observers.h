// Observers: the range of an activation, from samples that are seen once. Their memory does not grow with the number
// of samples, and their result does not depend on the order of the samples.
#ifndef FUSELAGE_PASSES_QUANTIZE_OBSERVERS_H_
#define FUSELAGE_PASSES_QUANTIZE_OBSERVERS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/base/status.h"
#include "passes/quantize/quantize.pb.h"

namespace fuselage::quantize {

// A closed interval of real values.
struct Range {
  double min = 0;
  double max = 0;
};

// Smallest and largest of `values`, which are all finite. InvalidArgument says what was found, and where:
// "element 17 is nan".
absl::StatusOr<Range> FiniteRange(absl::Span<const float> values);  // Not empty.

// One activation. A further method (moving average, MSE, entropy) is a further class.
class Observer {
 public:
  virtual ~Observer() = default;

  // Takes one sample's values, and checks that they are finite. No values: nothing happens.
  absl::Status Observe(absl::Span<const float> values);

  // The interval to quantize, as far as the samples so far tell; [0, 0] before the first.
  virtual Range range() const = 0;

 private:
  // `range` is that of `values`, which are finite and at least one.
  virtual void Take(absl::Span<const float> values, Range range) = 0;
};

class MinMaxObserver : public Observer {
 public:
  Range range() const override { return range_; }

 private:
  void Take(absl::Span<const float> values, Range range) override;

  Range range_;
  bool empty_ = true;
};

// Counts of values in kBins bins of equal width. The width is a power of two and bin edges are multiples of it, so that
// growing the range merges neighbours exactly: the counts are those of a histogram that knew the whole range before.
class Histogram {
 public:
  static constexpr int kBins = 4096;

  // `range` is that of `values`.
  void Add(absl::Span<const float> values, Range range);

  int64_t total() const { return total_; }
  Range range() const { return range_; }  // Of all values: exact.

  // The value below which `fraction` of all values lie; interpolated within its bin, and inside range().
  double Quantile(double fraction) const;

 private:
  void Cover(Range range);

  std::vector<int64_t> counts_;  // Bin i holds [first_ + i, first_ + i + 1) * 2^exponent_.
  int64_t first_ = 0;
  int exponent_ = 0;
  int64_t total_ = 0;
  Range range_;
};

// Cuts off both tails: keeps [100 - percent, percent] of all values.
class PercentileObserver : public Observer {
 public:
  explicit PercentileObserver(double percent) : percent_(percent) {}
  Range range() const override;

 private:
  void Take(absl::Span<const float> values, Range range) override { histogram_.Add(values, range); }

  double percent_;
  Histogram histogram_;
};

// InvalidArgument where the options make no sense.
absl::StatusOr<std::unique_ptr<Observer>> MakeObserver(const QuantizeOptions::Observer& options);

}  // namespace fuselage::quantize

#endif  // FUSELAGE_PASSES_QUANTIZE_OBSERVERS_H_
