// Plain loops, which each instruction set's source compiles into vectors of its own.
#ifndef FUSELAGE_KERNELS_REPRODUCIBLE_LOOPS_H_
#define FUSELAGE_KERNELS_REPRODUCIBLE_LOOPS_H_

#include "ir/base/elementwise_math.h"
#include "kernels/reproducible/primitives.h"

namespace fuselage::reproducible {

// kWidth channels, whose sums stay in registers.
template <int kWidth>
static inline void DepthwiseChannels(const float* const* x, const float* w, int64_t taps, int64_t channels, int64_t at,
                                     float* sums) {
  float sum[kWidth];
  for (int i = 0; i < kWidth; ++i) sum[i] = sums[at + i];
  for (int64_t t = 0; t < taps; ++t) {
    const float* from = x[t] + at;
    const float* weights = w + t * channels + at;
    for (int i = 0; i < kWidth; ++i) sum[i] = __builtin_fmaf(from[i], weights[i], sum[i]);
  }
  for (int i = 0; i < kWidth; ++i) sums[at + i] = sum[i];
}

static inline void DepthwiseLoop(const float* const* x, const float* w, int64_t taps, int64_t channels, float* sums) {
  int64_t at = 0;
  for (; at + 32 <= channels; at += 32) DepthwiseChannels<32>(x, w, taps, channels, at, sums);
  for (; at + 8 <= channels; at += 8) DepthwiseChannels<8>(x, w, taps, channels, at, sums);
  for (; at < channels; ++at) DepthwiseChannels<1>(x, w, taps, channels, at, sums);
}

static inline void ExponentialsLoop(const float* x, float largest, int64_t n, float* __restrict y) {
  for (int64_t i = 0; i < n; ++i) {
    const float distance = x[i] - largest;
    const float e = elementwise::ExpOfNegative(distance);
    y[i] = distance < -87.0f ? 0.0f : e;
  }
}

}  // namespace fuselage::reproducible

#endif  // FUSELAGE_KERNELS_REPRODUCIBLE_LOOPS_H_
