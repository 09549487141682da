// What hands elements on hands on codes, where layers behind it take codes: networks that were trained in codes have no
// quantize behind a max pool or a view, since none of their values changes there.
#ifndef FUSELAGE_PASSES_LOWER_MOVES_H_
#define FUSELAGE_PASSES_LOWER_MOVES_H_

#include "absl/status/statusor.h"
#include "ir/graph.h"
#include "passes/core/remarks.h"

namespace fuselage::lower {

// conv2d(max_pool2d(dequantize(x)), codes)  =>  conv2d(dequantize(quantize(max_pool2d(dequantize(x)))), codes)
//
// with the parameters of x: the same values. Likewise views, and several such in a row. Whether there was one.
absl::StatusOr<bool> MoveCodes(ir::Graph& graph, passes::Remarks& remarks);

}  // namespace fuselage::lower

#endif  // FUSELAGE_PASSES_LOWER_MOVES_H_
