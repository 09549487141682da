// AVX-512 intrinsics, native or emulated. A source that includes this instead of <immintrin.h> and puts its functions
// into `namespace FUSELAGE_AVX512_VNNI` compiles twice (kernels/core/kernel.bzl):
//
//   natively, into namespace avx512_vnni;
//   with FUSELAGE_EMULATE_AVX512, into namespace avx512_vnni_emulated: through SIMDe it runs on any machine, for tests.
//
// Only for such sources: it must not reach code that is compiled without their options.
#ifndef FUSELAGE_KERNELS_CORE_AVX512_H_
#define FUSELAGE_KERNELS_CORE_AVX512_H_

#ifndef FUSELAGE_EMULATE_AVX512

#include <immintrin.h>
#define FUSELAGE_AVX512_VNNI avx512_vnni

#else

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#define FUSELAGE_AVX512_VNNI avx512_vnni_emulated

// What SIMDe 0.7.4 lacks, or has in a form that rounds otherwise: its portable fmadd is not fused.
namespace fuselage::simde_more {

template <int kLanes, typename In, typename Out, typename To, typename From, typename F>
static inline To MapLanes(const From& from, F f) {
  In in[kLanes];
  Out out[kLanes];
  std::memcpy(in, &from, sizeof(in));
  for (int i = 0; i < kLanes; ++i) out[i] = f(in[i]);
  To to;
  std::memcpy(&to, out, sizeof(to));
  return to;
}

static inline simde__m512i Convert8To32(simde__m128i x, bool is_signed) {
  return is_signed ? MapLanes<16, int8_t, int32_t, simde__m512i>(x, [](int8_t v) -> int32_t { return v; })
                   : MapLanes<16, uint8_t, int32_t, simde__m512i>(x, [](uint8_t v) -> int32_t { return v; });
}
static inline simde__m512 ToFloat(simde__m512i x) {
  return MapLanes<16, int32_t, float, simde__m512>(x, [](int32_t v) { return static_cast<float>(v); });
}
static inline simde__m512d ToDoubles(simde__m256 x) {
  return MapLanes<8, float, double, simde__m512d>(x, [](float v) -> double { return v; });
}
// Out of range and NaN: INT_MIN, as x86 does.
static inline simde__m512i ToInt(simde__m512 x) {
  return MapLanes<16, float, int32_t, simde__m512i>(x, [](float v) {
    const float r = std::nearbyint(v);
    return r >= -2147483648.0f && r < 2147483648.0f ? static_cast<int32_t>(r) : INT32_MIN;
  });
}
static inline simde__m128i Truncate32To8(simde__m512i x) {
  return MapLanes<16, uint32_t, uint8_t, simde__m128i>(x, [](uint32_t v) { return static_cast<uint8_t>(v); });
}
static inline simde__m512 FusedMultiplyAdd(simde__m512 a, simde__m512 b, simde__m512 c) {
  float x[16], y[16], z[16];
  std::memcpy(x, &a, sizeof(x));
  std::memcpy(y, &b, sizeof(y));
  std::memcpy(z, &c, sizeof(z));
  for (int i = 0; i < 16; ++i) x[i] = std::fma(x[i], y[i], z[i]);
  std::memcpy(&a, x, sizeof(a));
  return a;
}

static inline simde__m512i ShiftRight32(simde__m512i x, int count) {
  return MapLanes<16, int32_t, int32_t, simde__m512i>(x, [count](int32_t v) { return v >> count; });
}
static inline simde__m512i Unpack16(simde__m512i a, simde__m512i b) {
  const simde__m256i low = simde_mm256_unpacklo_epi16(simde_mm512_castsi512_si256(a), simde_mm512_castsi512_si256(b));
  const simde__m256i high =
      simde_mm256_unpacklo_epi16(simde_mm512_extracti64x4_epi64(a, 1), simde_mm512_extracti64x4_epi64(b, 1));
  return simde_mm512_inserti64x4(simde_mm512_castsi256_si512(low), high, 1);
}
template <typename Vector>
static inline Vector LoadBytes(uint64_t mask, const void* from) {
  uint8_t bytes[sizeof(Vector)];
  for (size_t i = 0; i < sizeof(bytes); ++i) bytes[i] = mask >> i & 1 ? static_cast<const uint8_t*>(from)[i] : 0;
  Vector x;
  std::memcpy(&x, bytes, sizeof(x));
  return x;
}

template <typename Vector>
static inline void StoreBytes(void* to, uint64_t mask, Vector x) {
  uint8_t bytes[sizeof(Vector)];
  std::memcpy(bytes, &x, sizeof(x));
  for (size_t i = 0; i < sizeof(bytes); ++i) {
    if (mask >> i & 1) static_cast<uint8_t*>(to)[i] = bytes[i];
  }
}

}  // namespace fuselage::simde_more

#undef _mm512_cvtepu8_epi32
#undef _mm512_cvtepi8_epi32
#undef _mm512_cvtepi32_ps
#undef _mm512_cvtps_pd
#undef _mm512_cvtps_epi32
#undef _mm512_cvtepi32_epi8
#undef _mm512_fmadd_ps
#undef _mm512_fnmadd_ps
#undef _mm512_srai_epi32
#undef _mm512_unpacklo_epi16
#undef _mm512_maskz_loadu_epi8
#undef _mm512_mask_storeu_epi8
#undef _mm_maskz_loadu_epi8
#undef _mm_mask_storeu_epi8
#undef _mm256_mask_storeu_epi8
#define _mm512_cvtepu8_epi32(x) ::fuselage::simde_more::Convert8To32(x, false)
#define _mm512_cvtepi8_epi32(x) ::fuselage::simde_more::Convert8To32(x, true)
#define _mm512_cvtepi32_ps(x) ::fuselage::simde_more::ToFloat(x)
#define _mm512_cvtps_pd(x) ::fuselage::simde_more::ToDoubles(x)
#define _mm512_cvtps_epi32(x) ::fuselage::simde_more::ToInt(x)
#define _mm512_cvtepi32_epi8(x) ::fuselage::simde_more::Truncate32To8(x)
#define _mm512_fmadd_ps(a, b, c) ::fuselage::simde_more::FusedMultiplyAdd(a, b, c)
#define _mm512_fnmadd_ps(a, b, c) \
  ::fuselage::simde_more::FusedMultiplyAdd(simde_mm512_sub_ps(simde_mm512_set1_ps(-0.0f), a), b, c)
#define _mm512_srai_epi32(x, count) ::fuselage::simde_more::ShiftRight32(x, count)
#define _mm512_unpacklo_epi16(a, b) ::fuselage::simde_more::Unpack16(a, b)
#define _mm512_maskz_loadu_epi8(mask, from) ::fuselage::simde_more::LoadBytes<simde__m512i>(mask, from)
#define _mm512_mask_storeu_epi8(to, mask, x) ::fuselage::simde_more::StoreBytes(to, mask, x)
#define _mm_maskz_loadu_epi8(mask, from) ::fuselage::simde_more::LoadBytes<simde__m128i>(mask, from)
#define _mm_mask_storeu_epi8(to, mask, x) ::fuselage::simde_more::StoreBytes(to, mask, x)
#define _mm256_mask_storeu_epi8(to, mask, x) ::fuselage::simde_more::StoreBytes(to, mask, x)

#endif  // FUSELAGE_EMULATE_AVX512

#include <cstdint>

namespace fuselage::kernels {
namespace FUSELAGE_AVX512_VNNI {

namespace {  // Local to the including source.

// OneLane's operations (ir/base/elementwise_math.h) on a vector.
struct Lanes {
  using Floats = __m512;
  using Bits = __m512i;
  static inline __m512 Set(float x) { return _mm512_set1_ps(x); }
  static inline __m512 Add(__m512 a, __m512 b) { return _mm512_add_ps(a, b); }
  static inline __m512 Subtract(__m512 a, __m512 b) { return _mm512_sub_ps(a, b); }
  static inline __m512 Multiply(__m512 a, __m512 b) { return _mm512_mul_ps(a, b); }
  static inline __m512 MultiplyAdd(__m512 a, __m512 b, __m512 c) { return _mm512_fmadd_ps(a, b, c); }
  static inline __m512 MultiplySubtractFrom(__m512 a, __m512 b, __m512 c) { return _mm512_fnmadd_ps(a, b, c); }
  static inline __m512 Largest(__m512 a, __m512 b) { return _mm512_max_ps(a, b); }
  static inline __m512 Smallest(__m512 a, __m512 b) { return _mm512_min_ps(a, b); }
  static inline __m512 Magnitude(__m512 x) {
    return FloatsOf(_mm512_and_si512(BitsOf(x), _mm512_set1_epi32(0x7fffffff)));
  }
  static inline __m512i BitsOf(__m512 x) { return _mm512_castps_si512(x); }
  static inline __m512 FloatsOf(__m512i bits) { return _mm512_castsi512_ps(bits); }
  static inline __m512i AddBits(__m512i a, __m512i b) { return _mm512_add_epi32(a, b); }
  static inline __m512i ShiftLeft(__m512i bits, int count) { return _mm512_slli_epi32(bits, count); }
};

}  // namespace

// The register allocator treats what x was before and what it is from here on as two variables.
static inline void EndLiveRange([[maybe_unused]] __m512i& x) {
#ifndef FUSELAGE_EMULATE_AVX512
  asm("" : "+v"(x));
#endif
}

// The end of every kernel with u8 codes (see avx2.h).
struct OutputCodes {
  __m512 limit;
  __m512i zero_point, lo, hi, flip, order;
};

static inline OutputCodes MakeOutputCodes(int32_t zero_point, int32_t lo, int32_t hi, uint8_t flip) {
  return {_mm512_set1_ps(1073741824.0f),
          _mm512_set1_epi16(static_cast<int16_t>(zero_point)),
          _mm512_set1_epi8(static_cast<char>(lo)),
          _mm512_set1_epi8(static_cast<char>(hi)),
          _mm512_set1_epi8(static_cast<char>(flip)),
          _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15)};
}

static inline __m512i ToCodes(__m512 v0, __m512 v1, __m512 v2, __m512 v3, const OutputCodes& out) {
  const __m512i r0 = _mm512_cvtps_epi32(_mm512_min_ps(v0, out.limit));
  const __m512i r1 = _mm512_cvtps_epi32(_mm512_min_ps(v1, out.limit));
  const __m512i r2 = _mm512_cvtps_epi32(_mm512_min_ps(v2, out.limit));
  const __m512i r3 = _mm512_cvtps_epi32(_mm512_min_ps(v3, out.limit));
  const __m512i r01 = _mm512_adds_epi16(_mm512_packs_epi32(r0, r1), out.zero_point);
  const __m512i r23 = _mm512_adds_epi16(_mm512_packs_epi32(r2, r3), out.zero_point);
  const __m512i q = _mm512_permutexvar_epi32(out.order, _mm512_packus_epi16(r01, r23));
  return _mm512_xor_si512(_mm512_min_epu8(_mm512_max_epu8(q, out.lo), out.hi), out.flip);
}

}  // namespace FUSELAGE_AVX512_VNNI
}  // namespace fuselage::kernels

#endif  // FUSELAGE_KERNELS_CORE_AVX512_H_
