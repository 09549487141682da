// What rounding the weights of a layer does to its outputs: H = sum x^T x over the rows x that it reads (rows.h). An
// error e of one output channel's weights moves its outputs by e H e^T in all, as a sum of squares.
//
// All of it is double in a stated order of sums, by plain loops over rows that a compiler may turn into vectors but not
// reorder: every machine rounds a weight to the same code. A library for linear algebra chooses its order by the
// machine's vectors and caches.
#ifndef FUSELAGE_PASSES_WEIGHT_ROUNDING_HESSIAN_H_
#define FUSELAGE_PASSES_WEIGHT_ROUNDING_HESSIAN_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "ir/base/tensor.h"
#include "passes/quantize/weight_grid.h"

namespace fuselage::weight_rounding {

class Hessian {
 public:
  explicit Hessian(int64_t size)
      : size_(size), stride_((size + kColumns - 1) / kColumns * kColumns), lower_(size_ * stride_) {}

  // `rows`: [n][size], finite; each element is one chain of sums over them.
  void Add(absl::Span<const float> rows);
  void Add(const Hessian& other);

  int64_t size() const { return size_; }
  double operator()(int64_t i, int64_t j) const { return lower_[std::max(i, j) * stride_ + std::min(i, j)]; }
  double MeanOfDiagonal() const;

 private:
  static constexpr int64_t kColumns = 8;  // Sums of a loop that compilers unroll into vectors.

  int64_t size_, stride_;
  std::vector<double> lower_;  // [size][stride], at and below the diagonal.
};

// The factor U of a Hessian with `damping` on its diagonal, in the order of rounding: columns with the largest diagonal
// first. P (H + damping) P^T = U U^T, U upper triangular: the error of column j shows in the coordinates j, j + 1, ...
// of e P^T U, and later columns cancel there what earlier ones did.
class Factor {
 public:
  // `damping` > 0.
  Factor(const Hessian& hessian, double damping);

  const std::vector<int64_t>& order() const { return order_; }  // Place by place: which column.
  // U[0 ... j][j], which are j + 1 numbers.
  const double* column(int64_t j) const { return &columns_[j * size_]; }
  double damping() const { return damping_; }

 private:
  int64_t size_;
  double damping_;
  std::vector<int64_t> order_;
  std::vector<double> columns_;
};

struct Rounding {
  Tensor weight;
  // Sums of squares over all rows: of the outputs, and what rounding to nearest and this rounding add to them.
  double signal = 0, nearest = 0, rounded = 0;
};

// `weight`: f32 [outputs, ...], as the grid's. Outputs come in as many groups as there are factors, each of `columns`
// inputs of its own.
Rounding Round(const Tensor& weight, const quantize::WeightGrid& grid, absl::Span<const Factor> groups);

}  // namespace fuselage::weight_rounding

#endif  // FUSELAGE_PASSES_WEIGHT_ROUNDING_HESSIAN_H_
