// Scales the channels of layers by powers of two.
#ifndef FUSELAGE_PASSES_EQUALIZATION_SCALE_LAYER_H_
#define FUSELAGE_PASSES_EQUALIZATION_SCALE_LAYER_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ir/graph.h"

namespace fuselage::equalization {

// By layer: the exponents that its rows are divided by and its columns multiplied by; empty: all 0.
struct LayerScales {
  std::vector<int> rows, columns;
};

// `layer` calls a module of its own with f32 weights (channel_groups.h); `adjective`: "equalized" names what is new
// "<module>.equalized_weight".
absl::Status ScaleLayer(ir::Node* layer, const LayerScales& scales, absl::string_view adjective, ir::Graph& graph);

// The same for a layer_norm or rms_norm over one axis: its channel c is divided by 2^exponents[c].
absl::Status ScaleNorm(ir::Node* norm, absl::Span<const int> exponents, absl::string_view adjective, ir::Graph& graph);

// Divides channel c, on axis 1, by 2^exponents[c] in front of all readers of `value`.
absl::Status ScaleValue(ir::Node* value, absl::Span<const int> exponents, ir::Graph& graph);

}  // namespace fuselage::equalization

#endif  // FUSELAGE_PASSES_EQUALIZATION_SCALE_LAYER_H_
