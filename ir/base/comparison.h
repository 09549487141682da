// Comparison: how far computed values are from those that they should equal. The one place that says what NaN,
// infinities and shapes mean to a numeric check, since std::max(error, NaN) keeps `error`.
#ifndef FUSELAGE_IR_BASE_COMPARISON_H_
#define FUSELAGE_IR_BASE_COMPARISON_H_

#include <cstdint>
#include <limits>

#include "absl/types/span.h"
#include "ir/base/tensor.h"

namespace fuselage {

// Compares real values: codes are dequantized. Equal values differ by 0, and so do NaN and NaN. NaN or an infinity
// differs from all else by infinity, and so does a tensor from one of another shape.
struct Difference {
  double max_abs_error = 0;
  double rms_error = 0;
  double magnitude = 0;  // The largest finite |value| that was wanted.
  // Signal-to-noise ratio in dB: -20 log10(rms_error / signal), the signal being max - min of the finite values that
  // were wanted, or their magnitude where that is one value. +infinity where all are equal, -infinity where they differ
  // by infinity or there is no signal. Never NaN.
  double snr_db = std::numeric_limits<double>::infinity();
  int64_t lost = 0;  // Elements that are NaN or infinite where a finite value was wanted.
};

Difference Compare(const Tensor& wanted, const Tensor& found);

// The worst of the pairs; infinity where there are more of one than of the other.
Difference Compare(absl::Span<const Tensor> wanted, absl::Span<const Tensor> found);

// |found - wanted| <= absolute + relative * |wanted|, as NumPy's isclose has it, with NaN equal to NaN: an infinity is
// close to itself alone.
bool IsClose(double found, double wanted, double relative, double absolute);

}  // namespace fuselage

#endif  // FUSELAGE_IR_BASE_COMPARISON_H_
