#include <cstring>

#include "kernels/core/avx2.h"
#include "kernels/int8/relu/relu.h"

namespace fuselage::int8::relu {
namespace {

struct Constants {
  bool same;
  __m256i flip, zero_point, zero_point8;
  __m256 multiplier;
  kernels::avx2::OutputCodes out;
};

inline __m256 Scaled(__m128i codes, const Constants& k) {
  const __m256i centered = _mm256_sub_epi32(_mm256_cvtepu8_epi32(codes), k.zero_point);
  return _mm256_mul_ps(_mm256_cvtepi32_ps(centered), k.multiplier);
}

inline void Relu32(const Constants& k, const uint8_t* x, uint8_t* y) {
  const __m256i codes = _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)), k.flip);
  __m256i q;
  if (k.same) {
    q = _mm256_xor_si256(_mm256_max_epu8(codes, k.zero_point8), k.flip);
  } else {
    const __m128i low = _mm256_castsi256_si128(codes), high = _mm256_extracti128_si256(codes, 1);
    q = kernels::avx2::ToCodes(Scaled(low, k), Scaled(_mm_srli_si128(low, 8), k), Scaled(high, k),
                               Scaled(_mm_srli_si128(high, 8), k), k.out);
  }
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(y), q);
}

}  // namespace

void avx2::Run(const Params& p, const uint8_t* x, uint8_t* y, int64_t n) {
  const Constants k = {p.same,
                       _mm256_set1_epi8(static_cast<char>(p.flip_x)),
                       _mm256_set1_epi32(p.zero_point_x),
                       _mm256_set1_epi8(static_cast<char>(p.zero_point_x)),
                       _mm256_set1_ps(p.multiplier),
                       kernels::avx2::MakeOutputCodes(p.zero_point_y, p.lo, p.hi, p.flip_y)};
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) Relu32(k, x + i, y + i);
  if (i < n) {
    uint8_t tail_x[32] = {}, tail_y[32];
    std::memcpy(tail_x, x + i, n - i);
    Relu32(k, tail_x, tail_y);
    std::memcpy(y + i, tail_y, n - i);
  }
}

}  // namespace fuselage::int8::relu
