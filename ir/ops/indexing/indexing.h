// Ops that pick or replace elements by computed positions. Positions are i32 or i64 and count from the end where
// negative; one beyond its axis is an error of the evaluation that names it. Elements are of any type; codes keep their
// per-tensor quantization parameters.
//
//   index_select(input, index; dim)       input[..., index, ...]: `index`, of any rank, replaces axis dim
//                                         (torch.index_select; torch.nn.functional.embedding with dim 0; ONNX Gather)
//   gather(input, index; dim)             element i is that of `input` at i, but on axis dim at index[i]; `index` has
//                                         the input's rank and elsewhere no larger sizes (torch.gather; ONNX
//                                         GatherElements)
//   gather_nd(input, indices; batch_dims) the last axis of `indices` holds positions on the axes that follow the
//                                         batch_dims leading ones; what they name, in place of that axis (ONNX
//                                         GatherND)
//   scatter(input, index, src; dim, reduce)
//                                         `input`, with src[i] put where gather would read (torch.Tensor.scatter; ONNX
//                                         ScatterElements)
//   scatter_nd(input, indices, updates; reduce)
//                                         `input`, with `updates` put where gather_nd would read (ONNX ScatterND)
//   one_hot(index, values; num_classes, dim)
//                                         a new axis dim of num_classes elements: values[1] at index, values[0]
//                                         elsewhere; all values[0] where `index` is beyond (ONNX OneHot)
//   reverse_sequence(input, lengths; batch_dim, time_dim)
//                                         the first lengths[b] elements of axis time_dim in reverse order, for each b
//                                         on axis batch_dim (ONNX ReverseSequence)
//
// reduce: "none" (the last one put stays), "add", "mul", "max" or "min", in row-major order of src; numbers only.
#ifndef FUSELAGE_IR_OPS_INDEXING_INDEXING_H_
#define FUSELAGE_IR_OPS_INDEXING_INDEXING_H_

#include <vector>

#include "absl/status/statusor.h"
#include "ir/op.h"

namespace fuselage::ops::indexing {

// i32 or i64 without codes.
absl::Status CheckIndex(const ir::InferCall& call, int i);
// An index of an axis of `dim` elements, counted from the front.
absl::StatusOr<int64_t> Position(int64_t index, int64_t dim);
// The product of shape[begin, end).
int64_t SizeOf(const Shape& shape, int begin, int end);
// Where in `input` each element of `index` points, in elements: what gather reads. `axis` is normalized.
absl::StatusOr<std::vector<int64_t>> ElementOffsets(const Shape& input, const Tensor& index, int axis);
// Where in `input` the rows begin that `indices` names: what gather_nd reads.
absl::StatusOr<std::vector<int64_t>> RowOffsets(const Shape& input, const Tensor& indices, int batch_dims);
// `batch_dims` and the last axis of operand 1 fit operand 0.
absl::Status CheckIndices(const ir::InferCall& call, int64_t batch_dims);
// gather_nd's result.
Shape IndexedShape(const Shape& input, const Shape& indices, int64_t batch_dims);

void RegisterGather(ir::OpRegistry& registry);   // index_select, gather, gather_nd
void RegisterScatter(ir::OpRegistry& registry);  // scatter, scatter_nd
void Register(ir::OpRegistry& registry);         // All of the above.

}  // namespace fuselage::ops::indexing

#endif  // FUSELAGE_IR_OPS_INDEXING_INDEXING_H_
