// Activations of vectors. Only for sources compiled with -mavx2.
#ifndef FUSELAGE_KERNELS_CORE_ACTIVATE_AVX2_H_
#define FUSELAGE_KERNELS_CORE_ACTIVATE_AVX2_H_

#include <immintrin.h>

#include "kernels/core/activate.h"

namespace fuselage::kernels {
namespace avx2 {

// v[i] = Activated(function, v[i]), for an even number of vectors.
template <int kVectors>
static inline void ActivateVectors(const ElementwiseInstruction& function, __m256* v) {
  static_assert(8 * kVectors % kActivatedTogether == 0, "whole tiles");
  alignas(32) float values[8 * kVectors];
  for (int i = 0; i < kVectors; ++i) _mm256_store_ps(values + 8 * i, v[i]);
  Activate(function, values, 8 * kVectors);
  for (int i = 0; i < kVectors; ++i) v[i] = _mm256_load_ps(values + 8 * i);
}

}  // namespace avx2
}  // namespace fuselage::kernels

#endif  // FUSELAGE_KERNELS_CORE_ACTIVATE_AVX2_H_
