// How far a network's outputs are from those that they should be.
#ifndef FUSELAGE_HARNESS_MEASURE_OUTPUT_ERROR_H_
#define FUSELAGE_HARNESS_MEASURE_OUTPUT_ERROR_H_

#include "ir/base/tensor.h"

namespace fuselage::harness {

struct LogitsError {
  // The mean of KL(p || q) in bits, where p and q are the softmax of each row of `wanted` and `found`; NaN where one
  // holds NaN.
  double kl_divergence_bits = 0;
  double agreement = 100;  // Percent of the rows with the same largest logit.
};

// Rows lie along the last dimension: f32 [..., classes], of one shape, at least one row.
LogitsError CompareLogits(const Tensor& wanted, const Tensor& found);

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_MEASURE_OUTPUT_ERROR_H_
