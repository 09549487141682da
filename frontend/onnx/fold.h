// Results that are computed at import, and sizes that must be known there.
#ifndef FUSELAGE_FRONTEND_ONNX_FOLD_H_
#define FUSELAGE_FRONTEND_ONNX_FOLD_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "frontend/onnx/call.h"

namespace fuselage::onnx {

// From the values of some operands, null where one is absent. It has charged its result.
using Computation = absl::FunctionRef<absl::StatusOr<Tensor>(absl::Span<const Tensor* const> operands)>;

// Result 0 is a constant that `compute` makes of `operands`, which must be constants; where they follow from the
// batch, so does the result. Unimplemented where one is computed.
absl::Status FoldResult(Call& call, const std::vector<int>& operands, Computation compute);

// A tensor whose bytes have been charged.
absl::StatusOr<Tensor> ChargedTensor(Call& call, DType dtype, Shape shape);

// The constant list `i`: sizes for the axes `axes` of operand 0, in that order. Where one follows from the batch, and
// is not the axis's own size that does so too, the graph holds for this batch alone, which is worth a warning.
absl::StatusOr<std::vector<int64_t>> ConstantSizes(Call& call, int i, absl::Span<const int64_t> axes);

}  // namespace fuselage::onnx

#endif  // FUSELAGE_FRONTEND_ONNX_FOLD_H_
