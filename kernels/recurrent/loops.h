// Plain loops, which each instruction set's source compiles into vectors of its own.
#ifndef FUSELAGE_KERNELS_RECURRENT_LOOPS_H_
#define FUSELAGE_KERNELS_RECURRENT_LOOPS_H_

#include "ir/base/elementwise_math.h"
#include "kernels/recurrent/recurrent.h"

namespace fuselage::recurrent {
namespace {

// kRows rows by kColumns columns, whose sums stay in registers.
template <int kRows, int kColumns>
inline void Tile(const float* x, int64_t stride, const float* panel, int64_t depth, Initial initial, float* sums) {
  float sum[kRows][kColumns];
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kColumns; ++j) sum[i][j] = initial.sums[i * initial.stride + j];
  }
  for (int64_t k = 0; k < depth; ++k) {
    for (int i = 0; i < kRows; ++i) {
      const float factor = x[i * stride + k];
      for (int j = 0; j < kColumns; ++j) sum[i][j] = __builtin_fmaf(factor, panel[k * kPanel + j], sum[i][j]);
    }
  }
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kColumns; ++j) sums[i * kPanel + j] = sum[i][j];
  }
}

template <int kRows>
inline void MultiplyLoop(const float* x, int64_t stride, int64_t rows, const float* panel, int64_t depth,
                         Initial initial, float* sums) {
  for (; rows >= kRows; rows -= kRows, x += kRows * stride, initial.sums += kRows * initial.stride) {
    Tile<kRows, kPanel>(x, stride, panel, depth, initial, sums);
    sums += kRows * kPanel;
  }
  for (; rows > 0; --rows, x += stride, initial.sums += initial.stride, sums += kPanel) {
    Tile<1, kPanel>(x, stride, panel, depth, initial, sums);
  }
}

inline void ActivateLoop(Activation activation, float alpha, float beta, float* x, int64_t n) {
  using namespace elementwise;  // NOLINT
  switch (activation) {
    case Activation::kAffine: return Map(x, x, n, [=](float v) { return __builtin_fmaf(alpha, v, beta); });
    case Activation::kElu:
      return Map(x, x, n, [=](float v) {
        const float below = alpha * (ExpOfNegative(v < 0 ? v : 0.0f) - 1.0f);
        return v < 0 ? below : v;
      });
    case Activation::kHardSigmoid: return Map(x, x, n, [=](float v) { return Hardsigmoid(v, alpha, beta); });
    case Activation::kLeakyRelu: return Map(x, x, n, [=](float v) { return v < 0 ? v * alpha : v; });
    case Activation::kRelu: return Map(x, x, n, [](float v) { return Relu(v); });
    case Activation::kScaledTanh: return Map(x, x, n, [=](float v) { return alpha * Tanh(beta * v); });
    case Activation::kSigmoid: return Map(x, x, n, [](float v) { return Sigmoid(v); });
    case Activation::kSoftsign: return Map(x, x, n, [](float v) { return v / (1.0f + Magnitude(v)); });
    case Activation::kTanh: return Map(x, x, n, [](float v) { return Tanh(v); });
    case Activation::kThresholdedRelu: return Map(x, x, n, [=](float v) { return v > alpha ? v : 0.0f; });
  }
}

}  // namespace
}  // namespace fuselage::recurrent

#endif  // FUSELAGE_KERNELS_RECURRENT_LOOPS_H_
