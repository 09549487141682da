#include <cstring>

#include "kernels/core/avx512.h"
#include "kernels/int8/add/add.h"

namespace fuselage::int8::add {
namespace {

namespace core = kernels::FUSELAGE_AVX512_VNNI;

struct Constants {
  __m128i flip_a, flip_b;
  __m512i zero_point_a, zero_point_b;
  __m512 multiplier_a, multiplier_b;
  core::OutputCodes out;
};

inline __m512 Centered(const uint8_t* x, __m128i flip, __m512i zero_point) {
  const __m128i codes = _mm_xor_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x)), flip);
  return _mm512_cvtepi32_ps(_mm512_sub_epi32(_mm512_cvtepu8_epi32(codes), zero_point));
}

inline __m512 Sum(const uint8_t* a, const uint8_t* b, const Constants& k) {
  return _mm512_fmadd_ps(Centered(b, k.flip_b, k.zero_point_b), k.multiplier_b,
                         _mm512_mul_ps(Centered(a, k.flip_a, k.zero_point_a), k.multiplier_a));
}

inline void Add64(const Constants& k, const uint8_t* a, const uint8_t* b, uint8_t* y) {
  _mm512_storeu_si512(
      y, core::ToCodes(Sum(a, b, k), Sum(a + 16, b + 16, k), Sum(a + 32, b + 32, k), Sum(a + 48, b + 48, k), k.out));
}

}  // namespace

void FUSELAGE_AVX512_VNNI::Run(const Params& p, const uint8_t* a, const uint8_t* b, uint8_t* y, int64_t n) {
  const Constants k = {_mm_set1_epi8(static_cast<char>(p.flip_a)),
                       _mm_set1_epi8(static_cast<char>(p.flip_b)),
                       _mm512_set1_epi32(p.zero_point_a),
                       _mm512_set1_epi32(p.zero_point_b),
                       _mm512_set1_ps(p.multiplier_a),
                       _mm512_set1_ps(p.multiplier_b),
                       core::MakeOutputCodes(p.zero_point_y, p.lo, p.hi, p.flip_y)};
  int64_t i = 0;
  for (; i + 64 <= n; i += 64) Add64(k, a + i, b + i, y + i);
  if (i < n) {
    uint8_t tail_a[64] = {}, tail_b[64] = {}, tail_y[64];
    std::memcpy(tail_a, a + i, n - i);
    std::memcpy(tail_b, b + i, n - i);
    Add64(k, tail_a, tail_b, tail_y);
    std::memcpy(y + i, tail_y, n - i);
  }
}

}  // namespace fuselage::int8::add
