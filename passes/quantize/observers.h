// Observers: the range of an activation, from samples that are seen once, by one observer or by several that are
// merged. Only the moving average depends on the order of the samples, by their numbers, and only its memory grows with
// them: two numbers for each.
#ifndef FUSELAGE_PASSES_QUANTIZE_OBSERVERS_H_
#define FUSELAGE_PASSES_QUANTIZE_OBSERVERS_H_

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/base/status.h"
#include "passes/quantize/calibration_part.pb.h"
#include "passes/quantize/histogram.h"
#include "passes/quantize/quantize.pb.h"
#include "passes/quantize/scales.h"

namespace fuselage::quantize {

// Smallest and largest of `values`, which are all finite. InvalidArgument says what was found, and where:
// "element 17 is nan".
absl::StatusOr<Range> FiniteRange(absl::Span<const float> values);  // Not empty.

// One activation.
class Observer {
 public:
  virtual ~Observer() = default;

  // Takes the values of sample number `sample`, and checks that they are finite. No values: nothing happens. Samples of
  // one number count in the order in which they come.
  absl::Status Observe(absl::Span<const float> values, int sample = 0);

  // What it has seen so far.
  virtual ObserverState State() const = 0;
  // Adds what an observer of the same method has seen of other samples. Whoever saw which, and in whatever order they
  // are merged, the range is that of one observer, to the bit. DataLoss where no observer has such a state.
  virtual absl::Status Merge(const ObserverState& state) = 0;

  // The interval to quantize, as far as the samples so far tell; [0, 0] before the first.
  virtual Range range() const = 0;

 private:
  // `range` is that of `values`, which are finite and at least one.
  virtual void Take(absl::Span<const float> values, Range range, int sample) = 0;
};

class MinMaxObserver : public Observer {
 public:
  ObserverState State() const override;
  absl::Status Merge(const ObserverState& state) override;
  Range range() const override { return range_.value_or(Range()); }

 private:
  void Take(absl::Span<const float> values, Range range, int sample) override;

  std::optional<Range> range_;
};

// Exponential moving average of each sample's ends; the first sample's stand for those before it (Jacob et al.,
// "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference", CVPR 2018, 3.1).
class MovingAverageObserver : public Observer {
 public:
  explicit MovingAverageObserver(double momentum) : momentum_(momentum) {}
  ObserverState State() const override;
  absl::Status Merge(const ObserverState& state) override;
  Range range() const override;

 private:
  void Take(absl::Span<const float> values, Range range, int sample) override;

  double momentum_;
  std::multimap<int, Range> ranges_;  // By sample: the average is made when all are known.
};

class HistogramObserver : public Observer {
 public:
  ObserverState State() const override;
  absl::Status Merge(const ObserverState& state) override;

 protected:
  const Histogram& histogram() const { return histogram_; }

 private:
  void Take(absl::Span<const float> values, Range range, int /*sample*/) override { histogram_.Add(values, range); }

  Histogram histogram_;
};

// Cuts off both tails: keeps [100 - percent, percent] of all values.
class PercentileObserver : public HistogramObserver {
 public:
  explicit PercentileObserver(double percent) : percent_(percent) {}
  Range range() const override;

 private:
  double percent_;
};

// What the two searches below try: each end, or the magnitude of both, at i / kCandidates of its largest.
constexpr int kCandidates = 256;

// The range whose codes have the least sum of squared errors, over the middles of the histogram's bins (as torch.ao's
// HistogramObserver; Choukroun et al., "Low-bit Quantization of Neural Networks for Efficient Inference", 2019).
// Affine codes: both ends in turn until neither moves.
class MseObserver : public HistogramObserver {
 public:
  explicit MseObserver(QuantizeOptions::Activations activations) : activations_(activations) {}
  Range range() const override;

 private:
  QuantizeOptions::Activations activations_;
};

// The magnitude at which to saturate whose codes keep the most of the distribution: KL(P || Q) is least (Migacz, "8-bit
// Inference with TensorRT", GTC 2017). P: the histogram, with what saturates put into the outermost bins that do not.
// Q: what does not saturate, each code's values spread evenly over its bins that are not empty. Both are normalized;
// zeros count in neither. Tried are magnitudes at which a code is at least as wide as a bin.
class EntropyObserver : public HistogramObserver {
 public:
  explicit EntropyObserver(QuantizeOptions::Activations activations) : activations_(activations) {}
  Range range() const override;

 private:
  QuantizeOptions::Activations activations_;
};

// Values [..., features]: the range of the feature whose range, with 0 in it, has the median extent. Of fewer than
// kLeastRows rows a feature's range says little: then it is the range of all.
class MedianFeatureObserver : public Observer {
 public:
  static constexpr int64_t kLeastRows = 32;

  explicit MedianFeatureObserver(int64_t features) : ranges_(features) {}
  ObserverState State() const override;
  absl::Status Merge(const ObserverState& state) override;
  Range range() const override;

 private:
  void Take(absl::Span<const float> values, Range range, int sample) override;

  std::vector<Range> ranges_;  // With 0 in them.
  int64_t rows_ = 0;
};

// The natural logarithm of a finite x > 0, within 2^-51 of the larger of 1 and its magnitude. Unlike the C library's it
// is the same on every machine.
double NaturalLog(double x);

// With the defaults that the .proto states in place of what is unset.
QuantizeOptions::Observer WithDefaults(QuantizeOptions::Observer options);

// InvalidArgument where the options make no sense.
absl::StatusOr<std::unique_ptr<Observer>> MakeObserver(const QuantizeOptions::Observer& options,
                                                       QuantizeOptions::Activations activations);

}  // namespace fuselage::quantize

#endif  // FUSELAGE_PASSES_QUANTIZE_OBSERVERS_H_
