// Observers: the range of an activation, from samples that are seen once and in order. Their memory does not grow with
// the number of samples. Only the moving average depends on the order of the samples.
#ifndef FUSELAGE_PASSES_QUANTIZE_OBSERVERS_H_
#define FUSELAGE_PASSES_QUANTIZE_OBSERVERS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/base/status.h"
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

// Exponential moving average of each sample's ends; the first sample's stand for those before it (Jacob et al.,
// "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference", CVPR 2018, 3.1).
class MovingAverageObserver : public Observer {
 public:
  explicit MovingAverageObserver(double momentum) : momentum_(momentum) {}
  Range range() const override { return range_; }

 private:
  void Take(absl::Span<const float> values, Range range) override;

  double momentum_;
  Range range_;
  bool empty_ = true;
};

class HistogramObserver : public Observer {
 protected:
  const Histogram& histogram() const { return histogram_; }

 private:
  void Take(absl::Span<const float> values, Range range) override { histogram_.Add(values, range); }

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
