// Weights in MXFP4.
#ifndef FUSELAGE_PASSES_QUANTIZE_MXFP4_WEIGHTS_H_
#define FUSELAGE_PASSES_QUANTIZE_MXFP4_WEIGHTS_H_

#include <vector>

#include "absl/status/status.h"
#include "ir/graph.h"

namespace fuselage::quantize {

// Makes of each linear, a module's call, a function whose weight is dequantize_mxfp4 of constants: E2M1 codes and a
// scale for each 32 features (ir/ops/dynamic_quantize). What shares a weight shares its codes.
absl::Status UseMxfp4Weights(const std::vector<ir::Node*>& linears, ir::Graph& graph);

}  // namespace fuselage::quantize

#endif  // FUSELAGE_PASSES_QUANTIZE_MXFP4_WEIGHTS_H_
