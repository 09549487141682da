// The intrinsics of x86, or their portable forms where a test builds an AVX-512 source for machines without it.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_SIMD_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_SIMD_H_

#ifdef FUSELAGE_EMULATE_AVX512
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx2.h>
#include <simde/x86/avx512.h>
#include <simde/x86/fma.h>

// SIMDe 0.7.4 lacks these.
static inline simde__m512i ShiftRight32Emulated(simde__m512i x, int count) {
  const simde__m256i low = simde_mm256_srai_epi32(simde_mm512_castsi512_si256(x), count);
  const simde__m256i high = simde_mm256_srai_epi32(simde_mm512_extracti64x4_epi64(x, 1), count);
  return simde_mm512_inserti64x4(simde_mm512_castsi256_si512(low), high, 1);
}
static inline simde__m512i Unpack16Emulated(simde__m512i a, simde__m512i b) {
  const simde__m256i low = simde_mm256_unpacklo_epi16(simde_mm512_castsi512_si256(a), simde_mm512_castsi512_si256(b));
  const simde__m256i high =
      simde_mm256_unpacklo_epi16(simde_mm512_extracti64x4_epi64(a, 1), simde_mm512_extracti64x4_epi64(b, 1));
  return simde_mm512_inserti64x4(simde_mm512_castsi256_si512(low), high, 1);
}
static inline simde__m512i LoadBytesEmulated(uint64_t mask, const void* from) {
  uint8_t bytes[64];
  for (int i = 0; i < 64; ++i) bytes[i] = mask >> i & 1 ? static_cast<const uint8_t*>(from)[i] : 0;
  return simde_mm512_loadu_si512(bytes);
}
static inline void StoreBytesEmulated(void* to, uint64_t mask, simde__m512i x) {
  uint8_t bytes[64];
  simde_mm512_storeu_si512(bytes, x);
  for (int i = 0; i < 64; ++i) {
    if (mask >> i & 1) static_cast<uint8_t*>(to)[i] = bytes[i];
  }
}
#undef _mm512_srai_epi32
#undef _mm512_unpacklo_epi16
#undef _mm512_maskz_loadu_epi8
#undef _mm512_mask_storeu_epi8
#define _mm512_srai_epi32(x, count) ShiftRight32Emulated(x, count)
#define _mm512_unpacklo_epi16(a, b) Unpack16Emulated(a, b)
#define _mm512_maskz_loadu_epi8(mask, from) LoadBytesEmulated(mask, from)
#define _mm512_mask_storeu_epi8(to, mask, x) StoreBytesEmulated(to, mask, x)
#else
#include <immintrin.h>
#endif

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_SIMD_H_
