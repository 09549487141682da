// One row: plain loops, which each instruction set's source compiles into vectors of its own.
#ifndef FUSELAGE_KERNELS_NORM_ROWS_H_
#define FUSELAGE_KERNELS_NORM_ROWS_H_

#include "kernels/norm/norm.h"

namespace fuselage::norm {
namespace {

constexpr int kSums = 16;

// Adds the upper half of 2 * kWidth sums to the lower, until one is left.
template <int kWidth>
inline void Fold(double* sums) {
  for (int k = 0; k < kWidth; ++k) sums[k] += sums[k + kWidth];
  if constexpr (kWidth > 1) Fold<kWidth / 2>(sums);
}

// The sum of term(x[i]): of every sixteenth one, and then of those sums.
template <typename Term>
inline double SumOf(const float* x, int64_t n, Term term) {
  double sums[kSums] = {};
  for (; n >= kSums; n -= kSums, x += kSums) {
    for (int k = 0; k < kSums; ++k) sums[k] += term(x[k]);
  }
  if (n > 0) {
    float rest[kSums] = {};
    for (int64_t k = 0; k < n; ++k) rest[k] = x[k];
    for (int k = 0; k < kSums; ++k) sums[k] += k < n ? term(rest[k]) : 0.0;
  }
  Fold<kSums / 2>(sums);
  return sums[0];
}

inline void NormalizeRow(const Row& r) {
  const float* x = r.x;
  float* __restrict y = r.y;
  const double n = static_cast<double>(r.n);
  const double mean = r.centered ? SumOf(x, r.n, [](float v) { return static_cast<double>(v); }) / n : 0;
  const double squares = SumOf(x, r.n, [mean](float v) { return (v - mean) * (v - mean); });
  const float centre = static_cast<float>(mean), factor = static_cast<float>(1 / __builtin_sqrt(squares / n + r.eps));
  const float *weight = r.weight, *bias = r.bias;
  if (r.inner == 1) {
    for (int64_t i = 0; i < r.n; ++i) y[i] = (x[i] - centre) * factor * weight[i] + bias[i];
    return;
  }
  for (int64_t i = 0; i < r.n; ++weight, ++bias) {
    const float w = *weight, b = *bias;
    for (const int64_t end = i + r.inner; i < end; ++i) y[i] = (x[i] - centre) * factor * w + b;
  }
}

}  // namespace
}  // namespace fuselage::norm

#endif  // FUSELAGE_KERNELS_NORM_ROWS_H_
