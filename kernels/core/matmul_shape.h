// The shapes of a matrix product, as numpy.matmul has them: a vector is a row or a column, leading dimensions
// broadcast.
#ifndef FUSELAGE_KERNELS_CORE_MATMUL_SHAPE_H_
#define FUSELAGE_KERNELS_CORE_MATMUL_SHAPE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/core/kernel.h"

namespace fuselage::kernels {

struct MatmulShape {
  int64_t rows = 0, depth = 0, columns = 0;
  int64_t a_matrices = 0, b_matrices = 0;  // Of input 0, [rows, depth]; of input 1, [depth, columns].
  std::vector<int64_t> a, b;               // For each product, in the result's order, which of them it multiplies.
};

// Of inputs 0 and 1 and the output.
absl::StatusOr<MatmulShape> MatmulShapeOf(const KernelDesc& desc);

}  // namespace fuselage::kernels

#endif  // FUSELAGE_KERNELS_CORE_MATMUL_SHAPE_H_
