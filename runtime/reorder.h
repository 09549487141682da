// Row-major (NCHW) <-> NHWC, for tensors of rank 4 of any element size.
#ifndef FUSELAGE_RUNTIME_REORDER_H_
#define FUSELAGE_RUNTIME_REORDER_H_

#include <cstdint>

#include "ir/base/tensor.h"
#include "kernels/core/parallel.h"

namespace fuselage::runtime {

// Are the bytes of a value of this shape the same in both layouts? True for other ranks, which have one layout only.
bool SameInBothLayouts(const Shape& shape);

// Copies `from`, which lies as `type.layout` says, to `to` in the other layout. Rank 4 only; no overlap.
void Reorder(const TensorType& type, const void* from, void* to, kernels::Parallel& parallel);

// For each of `batch` matrices: to[c][r] = from[r][c]. Elements of 1, 2, 4 or 8 bytes.
void Transpose(int64_t batch, int64_t rows, int64_t columns, int64_t element_bytes, const void* from, void* to,
               kernels::Parallel& parallel);

}  // namespace fuselage::runtime

#endif  // FUSELAGE_RUNTIME_REORDER_H_
