// What exporters write out in smaller ops, and the one op that it is. The table is in patterns.cc.
#ifndef FUSELAGE_PASSES_NORMALIZE_PATTERNS_H_
#define FUSELAGE_PASSES_NORMALIZE_PATTERNS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "ir/op.h"
#include "passes/rewrite/rule.h"

namespace fuselage::normalize {

// In order: where two match the same result, the first applies. The patterns' operands are normalized: where one stands
// in another (a hardsigmoid in a hardswish), it is written as its op. They are what ONNX's function bodies, PyTorch's
// exporter up to opset 17, tf2onnx and the libraries on top of them write.
absl::StatusOr<std::vector<rewrite::Rule>> Patterns(const ir::OpRegistry& ops);

}  // namespace fuselage::normalize

#endif  // FUSELAGE_PASSES_NORMALIZE_PATTERNS_H_
