// The intrinsics of x86, or their portable forms where a test builds an AVX-512 source for machines without it.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_SIMD_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_SIMD_H_

#ifdef FUSELAGE_EMULATE_AVX512
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx2.h>
#include <simde/x86/avx512.h>
#include <simde/x86/fma.h>

// SIMDe 0.7.4 lacks it.
static inline simde__m512i ShiftRight32Emulated(simde__m512i x, int count) {
  const simde__m256i low = simde_mm256_srai_epi32(simde_mm512_castsi512_si256(x), count);
  const simde__m256i high = simde_mm256_srai_epi32(simde_mm512_extracti64x4_epi64(x, 1), count);
  return simde_mm512_inserti64x4(simde_mm512_castsi256_si512(low), high, 1);
}
#undef _mm512_srai_epi32
#define _mm512_srai_epi32(x, count) ShiftRight32Emulated(x, count)
#else
#include <immintrin.h>
#endif

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_SIMD_H_
