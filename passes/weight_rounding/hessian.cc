#include "passes/weight_rounding/hessian.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace fuselage::weight_rounding {
namespace {

constexpr int64_t kRows = 4;  // That one pass over the Hessian takes.

// By output channel: |e U|^2 - damping |e|^2, the sum of squares that errors [columns][outputs] add to the outputs.
std::vector<double> Squares(const std::vector<double>& errors, int64_t outputs, const Factor& factor) {
  const int64_t size = static_cast<int64_t>(factor.order().size());
  std::vector<double> squares(outputs), sums(outputs);
  for (int64_t j = 0; j < size; ++j) {
    std::fill(sums.begin(), sums.end(), 0.0);
    const double* u = factor.column(j);
    for (int64_t i = 0; i <= j; ++i) {
      const double* error = &errors[i * outputs];
      for (int64_t n = 0; n < outputs; ++n) sums[n] += u[i] * error[n];
    }
    const double* error = &errors[j * outputs];
    for (int64_t n = 0; n < outputs; ++n) squares[n] += sums[n] * sums[n] - factor.damping() * error[n] * error[n];
  }
  return squares;
}

}  // namespace

void Hessian::Add(absl::Span<const float> rows) {
  const int64_t count = static_cast<int64_t>(rows.size()) / size_;
  std::vector<double> some(kRows * stride_);
  for (int64_t row = 0; row < count; row += kRows) {
    // Rows of zeros behind the last one add nothing.
    std::fill(some.begin(), some.end(), 0.0);
    for (int64_t r = 0; r < std::min(kRows, count - row); ++r) {
      std::copy_n(rows.begin() + (row + r) * size_, size_, some.begin() + r * stride_);
    }
    const double *a = &some[0], *b = a + stride_, *c = b + stride_, *d = c + stride_;
    for (int64_t i = 0; i < size_; ++i) {
      double* sums = &lower_[i * stride_];
      for (int64_t first = 0; first <= i; first += kColumns) {
        for (int64_t j = first; j < first + kColumns; ++j) {
          sums[j] = (((sums[j] + a[i] * a[j]) + b[i] * b[j]) + c[i] * c[j]) + d[i] * d[j];
        }
      }
    }
  }
}

void Hessian::Add(const Hessian& other) {
  for (size_t i = 0; i < lower_.size(); ++i) lower_[i] += other.lower_[i];
}

double Hessian::MeanOfDiagonal() const {
  double sum = 0;
  for (int64_t i = 0; i < size_; ++i) sum += (*this)(i, i);
  return size_ == 0 ? 0 : sum / static_cast<double>(size_);
}

Factor::Factor(const Hessian& hessian, double damping)
    : size_(hessian.size()), damping_(damping), order_(hessian.size()), columns_(hessian.size() * hessian.size()) {
  std::iota(order_.begin(), order_.end(), 0);
  std::stable_sort(order_.begin(), order_.end(), [&](int64_t a, int64_t b) { return hessian(a, a) > hessian(b, b); });
  for (int64_t j = 0; j < size_; ++j) {
    for (int64_t i = 0; i <= j; ++i) columns_[j * size_ + i] = hessian(order_[j], order_[i]);
    columns_[j * size_ + j] += damping;
  }
  // From the last column back: what is left of the matrix is (what it was) - (column j) (column j)^T.
  for (int64_t j = size_ - 1; j >= 0; --j) {
    double* u = &columns_[j * size_];
    // Rounding may leave less than nothing of a column that others determine; the damping is what it has at least.
    const double diagonal = std::sqrt(std::max(u[j], damping));
    for (int64_t i = 0; i < j; ++i) u[i] /= diagonal;
    u[j] = diagonal;
    for (int64_t i = 0; i < j; ++i) {
      double* left = &columns_[i * size_];
      for (int64_t k = 0; k <= i; ++k) left[k] -= u[i] * u[k];
    }
  }
}

Rounding Round(const Tensor& weight, const quantize::WeightGrid& grid, absl::Span<const Factor> groups) {
  const int64_t outputs = grid.rows() / static_cast<int64_t>(groups.size()), size = grid.columns();
  Rounding rounding{weight};
  // By place in the order and output channel, as Squares reads them.
  std::vector<double> weights(size * outputs), nearest(size * outputs), errors(size * outputs), sums(outputs);
  for (size_t g = 0; g < groups.size(); ++g) {
    const Factor& factor = groups[g];
    const int64_t first = static_cast<int64_t>(g) * outputs;
    const float* w = weight.data<float>() + first * size;
    float* rounded = rounding.weight.data<float>() + first * size;
    for (int64_t j = 0; j < size; ++j) {
      const int64_t column = factor.order()[j];
      const double* u = factor.column(j);
      std::fill(sums.begin(), sums.end(), 0.0);
      for (int64_t i = 0; i < j; ++i) {
        const double* error = &errors[i * outputs];
        for (int64_t n = 0; n < outputs; ++n) sums[n] += u[i] * error[n];
      }
      for (int64_t n = 0; n < outputs; ++n) {
        const float x = w[n * size + column];
        // Cancels what the columns before did to coordinate j.
        const float target = grid.Decides(first + n, column, x) ? x : static_cast<float>(x + sums[n] / u[j]);
        float& value = rounded[n * size + column];
        value = grid.Nearest(first + n, column, target);
        weights[j * outputs + n] = x;
        errors[j * outputs + n] = static_cast<double>(x) - value;
        nearest[j * outputs + n] = static_cast<double>(x) - grid.Nearest(first + n, column, x);
      }
    }
    const std::vector<double> signal_squares = Squares(weights, outputs, factor);
    const std::vector<double> nearest_squares = Squares(nearest, outputs, factor);
    const std::vector<double> rounded_squares = Squares(errors, outputs, factor);
    for (int64_t n = 0; n < outputs; ++n) {
      rounding.signal += signal_squares[n];
      rounding.nearest += nearest_squares[n];
      rounding.rounded += std::min(rounded_squares[n], nearest_squares[n]);
      if (rounded_squares[n] < nearest_squares[n]) continue;
      for (int64_t k = 0; k < size; ++k) rounded[n * size + k] = grid.Nearest(first + n, k, w[n * size + k]);
    }
  }
  return rounding;
}

}  // namespace fuselage::weight_rounding
