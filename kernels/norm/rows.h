// Blocks of rows, for each instruction set's vectors of doubles:
//
//   struct Doubles {
//     static Doubles Load(const float* x), Load(const double* x);  // As many as a vector has: a divisor of 16.
//     friend Doubles operator+(Doubles a, Doubles b), operator-(Doubles a, double b), operator*(Doubles a, Doubles b);
//     double Sum() const;  // The upper half is added to the lower until one is left.
//     ...
//   };
#ifndef FUSELAGE_KERNELS_NORM_ROWS_H_
#define FUSELAGE_KERNELS_NORM_ROWS_H_

#include "kernels/core/activate.h"
#include "kernels/norm/norm.h"

namespace fuselage::norm {
namespace {

constexpr int kSums = 16;

// For kRows rows of n elements the sum of term(row, x[i]): of every sixteenth one, and then of those sums.
template <typename Doubles, int kRows, typename Term>
inline void SumRows(const float* x, int64_t n, double* results, Term term) {
  constexpr int kLanes = sizeof(Doubles) / sizeof(double), kParts = kSums / kLanes;
  Doubles sums[kRows][kParts] = {};
  int64_t i = 0;
  for (; i + kSums <= n; i += kSums) {
#pragma GCC unroll 2
    for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 16
      for (int part = 0; part < kParts; ++part) {
        sums[row][part] = sums[row][part] + term(row, Doubles::Load(x + row * n + i + part * kLanes));
      }
    }
  }
  if (i < n) {
#pragma GCC unroll 16
    for (int part = 0; part < kParts; ++part, i += kLanes) {
      if (i >= n) continue;
#pragma GCC unroll 2
      for (int row = 0; row < kRows; ++row) {
        const float* const from = x + row * n;
        if (i + kLanes <= n) {
          sums[row][part] = sums[row][part] + term(row, Doubles::Load(from + i));
        } else {
          double rest[kLanes] = {};
          for (int64_t k = i; k < n; ++k) rest[k - i] = term(row, static_cast<double>(from[k]));
          sums[row][part] = sums[row][part] + Doubles::Load(rest);
        }
      }
    }
  }
#pragma GCC unroll 2
  for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 4
    for (int width = kParts / 2; width > 0; width /= 2) {
#pragma GCC unroll 8
      for (int part = 0; part < width; ++part) sums[row][part] = sums[row][part] + sums[row][part + width];
    }
    results[row] = sums[row][0].Sum();
  }
}

// y = (x - centre) * factor * weight + bias, of kRows rows.
template <int kRows>
inline void ScaleRows(const Block& b, const float* x, float* y, const float* centre, const float* factor) {
  const int64_t n = b.n;
  const float c0 = centre[0], f0 = factor[0], c1 = centre[kRows - 1], f1 = factor[kRows - 1];
  const float *weight = b.weight, *bias = b.bias;
  for (int64_t i = 0; i < n; ++i) {
    y[i] = (x[i] - c0) * f0 * weight[i] + bias[i];
    if constexpr (kRows == 2) y[n + i] = (x[n + i] - c1) * f1 * weight[i] + bias[i];
  }
}

// y = f(y), of the block.
template <typename Activate>
inline void ActivateRows(const Block& b, Activate activate) {
  const int64_t n = b.rows * b.n;
  if (b.function != nullptr) {
    constexpr int64_t kTogether = kernels::kActivatedTogether;
    const int64_t whole = n / kTogether * kTogether;
    activate(*b.function, b.y, whole);
    float rest[kTogether] = {};
    for (int64_t i = whole; i < n; ++i) rest[i - whole] = b.y[i];
    if (whole < n) activate(*b.function, rest, kTogether);
    for (int64_t i = whole; i < n; ++i) b.y[i] = rest[i - whole];
  }
  const float min = b.min, max = b.max;
  if (min == -__builtin_inff() && max == __builtin_inff()) return;
  for (int64_t i = 0; i < n; ++i) {
    const float y = b.y[i] < min ? min : b.y[i];
    b.y[i] = y > max ? max : y;
  }
}

// What is done once for each row is done for all rows at once: divisions and roots of a vector of them. The rest is
// done for two rows at a time: additions to the sums of one alone would wait for one another, and two share the loads
// of their parameters.
template <typename Doubles, typename Activate>
inline void NormalizeBlock(const Block& b, Activate activate) {
  if (b.residual != nullptr) {
    for (int64_t i = 0; i < b.rows * b.n; ++i) b.sum[i] = b.x[i] + b.residual[i];
  }
  const float* const x = b.residual != nullptr ? b.sum : b.x;
  const double n = static_cast<double>(b.n);
  double mean[kBlockRows] = {}, squares[kBlockRows] = {};
  float centre[kBlockRows], factor[kBlockRows];
  const auto sum = [&b, x](double* results, auto term) {
    int64_t row = 0;
    for (; row + 2 <= b.rows; row += 2) {
      SumRows<Doubles, 2>(x + row * b.n, b.n, results + row, [=](int i, auto v) { return term(row + i, v); });
    }
    if (row == b.rows) return;
    SumRows<Doubles, 1>(x + row * b.n, b.n, results + row, [=](int, auto v) { return term(row, v); });
  };
  if (b.centered) sum(mean, [](int64_t, auto v) { return v; });
  for (int i = 0; i < kBlockRows; ++i) mean[i] /= n;
  sum(squares, [&mean](int64_t row, auto v) {
    const auto distance = v - mean[row];
    return distance * distance;
  });
  for (int i = 0; i < kBlockRows; ++i) {
    centre[i] = static_cast<float>(mean[i]);
    factor[i] = static_cast<float>(1 / __builtin_sqrt(squares[i] / n + b.eps));
  }
  if (b.inner > 1) {
    const float *weight = b.weight, *bias = b.bias;
    for (int64_t i = 0; i < b.n; ++weight, ++bias) {
      const float w = *weight, o = *bias, c = centre[0], f = factor[0];
      for (const int64_t end = i + b.inner; i < end; ++i) b.y[i] = (x[i] - c) * f * w + o;
    }
    return ActivateRows(b, activate);
  }
  int64_t row = 0;
  for (; row + 2 <= b.rows; row += 2) {
    ScaleRows<2>(b, x + row * b.n, b.y + row * b.n, centre + row, factor + row);
  }
  if (row < b.rows) ScaleRows<1>(b, x + row * b.n, b.y + row * b.n, centre + row, factor + row);
  ActivateRows(b, activate);
}

}  // namespace
}  // namespace fuselage::norm

#endif  // FUSELAGE_KERNELS_NORM_ROWS_H_
