// How reference evaluation reads, moves and stores elements.
#ifndef FUSELAGE_IR_OPS_CORE_VALUES_H_
#define FUSELAGE_IR_OPS_CORE_VALUES_H_

#include <vector>

#include "absl/types/span.h"
#include "ir/base/tensor.h"

namespace fuselage::ops {

// The real values that a tensor stands for: a quantized one is dequantized (in f32, as a compiled network has it).
std::vector<double> RealValues(const Tensor& tensor);

// The elements of an integer or bool tensor, exactly; and a tensor of such, reduced modulo 2^bits.
std::vector<int64_t> Integers(const Tensor& tensor);
Tensor OfIntegers(TensorType type, absl::Span<const int64_t> values);

// A tensor of `values`, each rounded once.
Tensor OfReals(TensorType type, absl::Span<const double> values);

// One result, moved into its vector: an initializer list would copy the data.
std::vector<Tensor> One(Tensor tensor);

// Distance in elements between neighbours along each axis of a row-major tensor.
std::vector<int64_t> RowMajorStrides(const Shape& shape);

// Element i (row-major) of the result of `type` is the element of `tensor` at start + sum_k index_k * strides[k].
Tensor Gather(const Tensor& tensor, TensorType type, absl::Span<const int64_t> strides, int64_t start = 0);

// The same data under another type of as many elements.
Tensor WithType(const Tensor& tensor, TensorType type);

// NaN stays NaN.
inline double Relu(double x) { return x < 0 ? 0 : x; }

// Calls f(i, offset) for each index of `shape` in row-major order, with offset = start + sum_k index_k * strides[k].
template <typename F>
void ForEachOffset(const Shape& shape, absl::Span<const int64_t> strides, int64_t start, F f) {
  for (int64_t dim : shape) {
    if (dim == 0) return;
  }
  const int rank = static_cast<int>(shape.size());
  std::vector<int64_t> index(rank, 0);
  int64_t offset = start;
  for (int64_t i = 0;; ++i) {
    f(i, offset);
    int axis = rank - 1;
    for (; axis >= 0; --axis) {
      offset += strides[axis];
      if (++index[axis] < shape[axis]) break;
      offset -= strides[axis] * shape[axis];
      index[axis] = 0;
    }
    if (axis < 0) return;
  }
}

}  // namespace fuselage::ops

#endif  // FUSELAGE_IR_OPS_CORE_VALUES_H_
