// Several results at once: plain loops, which each instruction set's source compiles into vectors of its own.
#ifndef FUSELAGE_KERNELS_REDUCE_COLUMNS_H_
#define FUSELAGE_KERNELS_REDUCE_COLUMNS_H_

#include "kernels/reduce/reduce.h"

namespace fuselage::reduce {
namespace {

template <Fold fold>
inline double Start() {
  switch (fold) {
    case Fold::kProd: return 1;
    case Fold::kAmax: return -__builtin_inf();
    case Fold::kAmin: return __builtin_inf();
    default: return 0;
  }
}
template <Fold fold>
inline double Step(double a, double b) {
  switch (fold) {
    case Fold::kProd: return a * b;
    case Fold::kAmax: return a >= b || a != a ? a : b;
    case Fold::kAmin: return a <= b || a != a ? a : b;
    default: return a + b;
  }
}

// kColumns results; kUnit: which lie beside each other in x.
template <Fold fold, int kColumns, bool kUnit>
inline void FoldOf(const Params& p, const float* x, float* y) {
  const int64_t stride = kUnit ? 1 : p.result_stride;
  const Loop inner = p.loops[p.num_loops - 1];
  double folds[kColumns];
  for (int c = 0; c < kColumns; ++c) folds[c] = Start<fold>();
  int64_t index[kMostAxes] = {};
  int32_t loop = 0;
  while (loop >= 0) {
    const float* from = x;
    for (int64_t i = 0; i < inner.size; ++i, from += inner.stride) {
      for (int c = 0; c < kColumns; ++c) folds[c] = Step<fold>(folds[c], static_cast<double>(from[c * stride]));
    }
    for (loop = p.num_loops - 2; loop >= 0; --loop) {
      x += p.loops[loop].stride;
      if (++index[loop] < p.loops[loop].size) break;
      x -= p.loops[loop].stride * p.loops[loop].size;
      index[loop] = 0;
    }
  }
  const double divisor = fold == Fold::kMean ? static_cast<double>(p.count) : 1.0;
  for (int c = 0; c < kColumns; ++c) y[c] = static_cast<float>(folds[c] / divisor);
}

template <Fold fold>
inline void FoldsOf(const Params& p, const float* x, float* y, int64_t n) {
  // Folds at once hide the latency of an addition. Fewer where each walks memory of its own: lines that lie a multiple
  // of 4096 bytes apart share a cache set.
  int64_t i = 0;
  if (p.result_stride == 1) {
    for (; i + 16 <= n; i += 16) FoldOf<fold, 16, true>(p, x + i, y + i);
    for (; i + 4 <= n; i += 4) FoldOf<fold, 4, true>(p, x + i, y + i);
  } else {
    for (; i + 8 <= n; i += 8) FoldOf<fold, 8, false>(p, x + i * p.result_stride, y + i);
  }
  for (; i < n; ++i) FoldOf<fold, 1, false>(p, x + i * p.result_stride, y + i);
}

inline void Folds(const Params& p, const float* x, float* y, int64_t n) {
  switch (p.fold) {
    case Fold::kMean: return FoldsOf<Fold::kMean>(p, x, y, n);
    case Fold::kSum: return FoldsOf<Fold::kSum>(p, x, y, n);
    case Fold::kProd: return FoldsOf<Fold::kProd>(p, x, y, n);
    case Fold::kAmax: return FoldsOf<Fold::kAmax>(p, x, y, n);
    case Fold::kAmin: return FoldsOf<Fold::kAmin>(p, x, y, n);
  }
}

}  // namespace
}  // namespace fuselage::reduce

#endif  // FUSELAGE_KERNELS_REDUCE_COLUMNS_H_
