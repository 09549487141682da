// Several means at once: plain loops, which each instruction set's source compiles into vectors of its own.
#ifndef FUSELAGE_KERNELS_MEAN_COLUMNS_H_
#define FUSELAGE_KERNELS_MEAN_COLUMNS_H_

#include "kernels/mean/mean.h"

namespace fuselage::mean {
namespace {

// kColumns results; kUnit: which lie beside each other in x.
template <int kColumns, bool kUnit>
inline void MeanOf(const Params& p, const float* x, float* y) {
  const int64_t stride = kUnit ? 1 : p.result_stride;
  const Loop inner = p.loops[p.num_loops - 1];
  double sums[kColumns] = {};
  int64_t index[kMostAxes] = {};
  int32_t loop = 0;
  while (loop >= 0) {
    const float* from = x;
    for (int64_t i = 0; i < inner.size; ++i, from += inner.stride) {
      for (int c = 0; c < kColumns; ++c) sums[c] += static_cast<double>(from[c * stride]);
    }
    for (loop = p.num_loops - 2; loop >= 0; --loop) {
      x += p.loops[loop].stride;
      if (++index[loop] < p.loops[loop].size) break;
      x -= p.loops[loop].stride * p.loops[loop].size;
      index[loop] = 0;
    }
  }
  for (int c = 0; c < kColumns; ++c) y[c] = static_cast<float>(sums[c] / static_cast<double>(p.count));
}

inline void Means(const Params& p, const float* x, float* y, int64_t n) {
  // Sums at once hide the latency of an addition. Fewer where each walks memory of its own: lines that lie a multiple
  // of 4096 bytes apart share a cache set.
  int64_t i = 0;
  if (p.result_stride == 1) {
    for (; i + 16 <= n; i += 16) MeanOf<16, true>(p, x + i, y + i);
    for (; i + 4 <= n; i += 4) MeanOf<4, true>(p, x + i, y + i);
  } else {
    for (; i + 8 <= n; i += 8) MeanOf<8, false>(p, x + i * p.result_stride, y + i);
  }
  for (; i < n; ++i) MeanOf<1, false>(p, x + i * p.result_stride, y + i);
}

}  // namespace
}  // namespace fuselage::mean

#endif  // FUSELAGE_KERNELS_MEAN_COLUMNS_H_
