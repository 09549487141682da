// Activations of vectors, native or emulated (see avx512.h).
#ifndef FUSELAGE_KERNELS_CORE_ACTIVATE_AVX512_H_
#define FUSELAGE_KERNELS_CORE_ACTIVATE_AVX512_H_

#include "kernels/core/activate.h"
#include "kernels/core/avx512.h"

namespace fuselage::kernels {
namespace FUSELAGE_AVX512_VNNI {

// use(activate), where activate(v) sets v[i] = Activated(function, v[i]) for kVectors vectors; the most frequent
// functions in registers.
template <int kVectors, typename Use>
static inline __attribute__((always_inline)) void WithActivation(const ElementwiseInstruction& function, Use use) {
  const bool done = MapFrequent<Lanes>(function, [=](auto f) __attribute__((always_inline)) {
    use([=](__m512* v) __attribute__((always_inline)) {
#pragma GCC unroll 8
      for (int i = 0; i < kVectors; ++i) v[i] = f(v[i]);
    });
  });
  if (done) return;
  use([&](__m512* v) {
    alignas(64) float values[16 * kVectors];
    for (int i = 0; i < kVectors; ++i) _mm512_storeu_ps(values + 16 * i, v[i]);
    Activate(function, values, 16 * kVectors);
    for (int i = 0; i < kVectors; ++i) v[i] = _mm512_loadu_ps(values + 16 * i);
  });
}
template <int kVectors>
static inline __attribute__((always_inline)) void ActivateVectors(const ElementwiseInstruction& function, __m512* v) {
  WithActivation<kVectors>(function, [v](auto activate) __attribute__((always_inline)) { activate(v); });
}

}  // namespace FUSELAGE_AVX512_VNNI
}  // namespace fuselage::kernels

#endif  // FUSELAGE_KERNELS_CORE_ACTIVATE_AVX512_H_
