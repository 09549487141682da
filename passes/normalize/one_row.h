// A sequence is an image of one row: what convolves sequences becomes what convolves images, on whose kernels there is
// INT8, and all the rest.
//   conv1d(x)              =>  squeeze(conv2d(unsqueeze(x)))        [N, C, L] as [N, C, 1, L]; conv_transpose1d, and
//                                                                   conv_integer1d, too
//   f(squeeze(x))          =>  squeeze(f(x))                        elementwise ops, pools, batch norms, quantizes
//   f(squeeze(x), constants)  =>  squeeze(f(x, constants))          also of one column: TensorFlow's bias of a conv1d
//   unsqueeze(squeeze(x))  =>  x
// Between two convolutions nothing is left of the views.
#ifndef FUSELAGE_PASSES_NORMALIZE_ONE_ROW_H_
#define FUSELAGE_PASSES_NORMALIZE_ONE_ROW_H_

#include <vector>

#include "absl/status/statusor.h"
#include "passes/normalize/new_nodes.h"
#include "passes/normalize/rules.h"

namespace fuselage::normalize {

// What `node` becomes by the first two; empty where it stays.
std::vector<NewCall> OfOneRow(const ir::Node& node);

// The third, and of columns also without constants. Adds what gives what `node` does; false where it stays.
absl::StatusOr<bool> OfImageAndConstants(const ir::Node& node, NewNodes& nodes);

// x, where `node` is a view of a view of it that gives it back; else null.
ir::Node* ViewedAndBackOrNull(const ir::Node& node);

}  // namespace fuselage::normalize

#endif  // FUSELAGE_PASSES_NORMALIZE_ONE_ROW_H_
