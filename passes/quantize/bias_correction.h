// What rounding a layer's weight to codes adds to its outputs in the mean, which its bias can take back.
#ifndef FUSELAGE_PASSES_QUANTIZE_BIAS_CORRECTION_H_
#define FUSELAGE_PASSES_QUANTIZE_BIAS_CORRECTION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "passes/core/pass.h"

namespace fuselage::quantize {

struct RoundedWeight {
  std::string module;  // Its path; the weight is f32 [output channels, ...].
  const Tensor* codes = nullptr;
};

// For each, by output channel: E[layer(x, codes - weight)] over the calibration samples, the positions of the output and
// the module's call sites. x is what the FP32 network computes (Nagel et al., "Data-Free Quantization Through Weight
// Equalization and Bias Correction", ICCV 2019, section 4.2, with samples in place of batch norm's statistics).
absl::StatusOr<std::vector<std::vector<double>>> MeanErrors(const ir::Graph& graph,
                                                            absl::Span<const RoundedWeight> weights,
                                                            passes::Runner& runner);

}  // namespace fuselage::quantize

#endif  // FUSELAGE_PASSES_QUANTIZE_BIAS_CORRECTION_H_
