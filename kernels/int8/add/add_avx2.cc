#include <cstring>

#include "kernels/core/avx2.h"
#include "kernels/int8/add/add.h"

namespace fuselage::int8::add {
namespace {

struct Constants {
  __m256i flip_a, flip_b, zero_point_a, zero_point_b;
  __m256 multiplier_a, multiplier_b;
  kernels::avx2::OutputCodes out;
};

inline __m256 Centered(__m128i codes, __m256i zero_point) {
  return _mm256_cvtepi32_ps(_mm256_sub_epi32(_mm256_cvtepu8_epi32(codes), zero_point));
}

inline __m256 Sum(__m128i a, __m128i b, const Constants& k) {
  return _mm256_fmadd_ps(Centered(b, k.zero_point_b), k.multiplier_b,
                         _mm256_mul_ps(Centered(a, k.zero_point_a), k.multiplier_a));
}

inline void Add32(const Constants& k, const uint8_t* a, const uint8_t* b, uint8_t* y) {
  const __m256i va = _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(a)), k.flip_a);
  const __m256i vb = _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(b)), k.flip_b);
  const __m128i a0 = _mm256_castsi256_si128(va), a1 = _mm256_extracti128_si256(va, 1);
  const __m128i b0 = _mm256_castsi256_si128(vb), b1 = _mm256_extracti128_si256(vb, 1);
  const __m256i q = kernels::avx2::ToCodes(Sum(a0, b0, k), Sum(_mm_srli_si128(a0, 8), _mm_srli_si128(b0, 8), k),
                                           Sum(a1, b1, k), Sum(_mm_srli_si128(a1, 8), _mm_srli_si128(b1, 8), k), k.out);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(y), q);
}

}  // namespace

void avx2::Run(const Params& p, const uint8_t* a, const uint8_t* b, uint8_t* y, int64_t n) {
  const Constants k = {_mm256_set1_epi8(static_cast<char>(p.flip_a)),
                       _mm256_set1_epi8(static_cast<char>(p.flip_b)),
                       _mm256_set1_epi32(p.zero_point_a),
                       _mm256_set1_epi32(p.zero_point_b),
                       _mm256_set1_ps(p.multiplier_a),
                       _mm256_set1_ps(p.multiplier_b),
                       kernels::avx2::MakeOutputCodes(p.zero_point_y, p.lo, p.hi, p.flip_y)};
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) Add32(k, a + i, b + i, y + i);
  if (i < n) {
    uint8_t tail_a[32] = {}, tail_b[32] = {}, tail_y[32];
    std::memcpy(tail_a, a + i, n - i);
    std::memcpy(tail_b, b + i, n - i);
    Add32(k, tail_a, tail_b, tail_y);
    std::memcpy(y + i, tail_y, n - i);
  }
}

}  // namespace fuselage::int8::add
