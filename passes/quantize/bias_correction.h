// What rounding a layer's weight and input to codes adds to its outputs in the mean, which its bias can take back.
#ifndef FUSELAGE_PASSES_QUANTIZE_BIAS_CORRECTION_H_
#define FUSELAGE_PASSES_QUANTIZE_BIAS_CORRECTION_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "passes/core/pass.h"
#include "passes/quantize/scales.h"

namespace fuselage::quantize {

struct RoundedWeight {
  std::string module;  // Its path: a conv2d or a linear; the weight is f32 [output channels, ...].
  const Tensor* codes = nullptr;
};

// How a call's input is rounded.
using InputCodes = std::function<Codes(const ir::Node& call)>;

// For each, by output channel: E[layer(codes of x, codes of weight) - layer(x, weight)] over the calibration samples,
// the positions of the output and the module's call sites. x is what the FP32 network computes (Nagel et al.,
// "Data-Free Quantization Through Weight Equalization and Bias Correction", ICCV 2019, section 4.2, with samples in
// place of batch norm's statistics). A layer is linear in x, so means of x are enough: one run of the FP32 network, and
// two sums for each element that a layer reads.
absl::StatusOr<std::vector<std::vector<double>>> MeanErrors(const ir::Graph& graph,
                                                            absl::Span<const RoundedWeight> weights,
                                                            const InputCodes& input_codes, passes::Runner& runner);

// The same, but for layers whose errors a file of `cache_folder` has for this graph and these samples; that file gets
// those of the others. No folder, or samples without a key: nothing is kept.
absl::StatusOr<std::vector<std::vector<double>>> KeptMeanErrors(const ir::Graph& graph,
                                                                absl::Span<const RoundedWeight> weights,
                                                                const InputCodes& input_codes, passes::Runner& runner,
                                                                const std::string& cache_folder,
                                                                passes::Remarks& remarks);

}  // namespace fuselage::quantize

#endif  // FUSELAGE_PASSES_QUANTIZE_BIAS_CORRECTION_H_
