// What the weights of a layer are multiplied by, as rows with an element for each weight of an output channel.
#ifndef FUSELAGE_PASSES_QUANTIZE_ROWS_H_
#define FUSELAGE_PASSES_QUANTIZE_ROWS_H_

#include <cstdint>
#include <functional>

#include "absl/types/span.h"
#include "ir/base/tensor.h"
#include "ir/graph.h"

namespace fuselage::quantize {

// Groups of output channels that read inputs of their own: a conv2d's.
int64_t GroupsOf(const ir::Node& call);

// Calls `visit` with the rows [n][columns] that output channels of `group` are multiplied by where `call` reads
// `input`: a linear's with the input as it is; a conv2d's with each image's output pixels, row by row, as im2col has
// them, zeros where the window is in the padding.
void ForEachRows(const ir::Node& call, const Tensor& input,
                 const std::function<void(int64_t group, absl::Span<const float> rows)>& visit);

}  // namespace fuselage::quantize

#endif  // FUSELAGE_PASSES_QUANTIZE_ROWS_H_
