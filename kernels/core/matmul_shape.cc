#include "kernels/core/matmul_shape.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace fuselage::kernels {
namespace {

// Whether a stack of matrices broadcasts to the result's.
bool Broadcasts(const Shape& matrices, const Shape& result) {
  for (size_t i = 3; i <= matrices.size(); ++i) {
    const int64_t own = matrices[matrices.size() - i];
    if (own != 1 && own != result[result.size() - i]) return false;
  }
  return true;
}

// For each matrix of `result` the index of the one of `matrices` that meets it.
std::vector<int64_t> Indices(const Shape& matrices, const Shape& result) {
  std::vector<int64_t> strides(result.size(), 0), indices = {0};
  int64_t count = 1;
  for (size_t i = 3; i <= matrices.size(); ++i) {
    const int64_t own = matrices[matrices.size() - i];
    if (own != 1) strides[result.size() - i] = count;
    count *= own;
  }
  for (size_t axis = 0; axis + 2 < result.size(); ++axis) {
    std::vector<int64_t> next;
    for (const int64_t index : indices) {
      for (int64_t i = 0; i < result[axis]; ++i) next.push_back(index + i * strides[axis]);
    }
    indices = std::move(next);
  }
  return indices;
}

int64_t Matrices(const Shape& shape) {
  int64_t count = 1;
  for (size_t axis = 0; axis + 2 < shape.size(); ++axis) count *= shape[axis];
  return count;
}

}  // namespace

absl::StatusOr<MatmulShape> MatmulShapeOf(const KernelDesc& desc) {
  if (!desc.has_input(0) || !desc.has_input(1)) return absl::InvalidArgumentError("matmul: wanted two operands");
  const TensorType& y_type = desc.output();
  Shape a = desc.input(0).shape, b = desc.input(1).shape, y = y_type.shape;
  const bool row = a.size() == 1, column = b.size() == 1;
  if (!a.empty() && !b.empty() && y.size() + row + column == std::max(a.size() + row, b.size() + column)) {
    if (row) a.insert(a.begin(), 1);
    if (column) b.push_back(1);
    if (row) y.insert(y.end() - !column, 1);
    if (column) y.push_back(1);
    MatmulShape shape;
    shape.rows = a[a.size() - 2];
    shape.depth = a.back();
    shape.columns = b.back();
    if (b[b.size() - 2] == shape.depth && y[y.size() - 2] == shape.rows && y.back() == shape.columns &&
        Broadcasts(a, y) && Broadcasts(b, y)) {
      shape.a_matrices = Matrices(a);
      shape.b_matrices = Matrices(b);
      shape.a = Indices(a, y);
      shape.b = Indices(b, y);
      return shape;
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("matmul of ", ToString(desc.input(0)), " and ", ToString(desc.input(1)), " to ", ToString(y_type)));
}

}  // namespace fuselage::kernels
