#include <cstring>

#include "kernels/core/avx512.h"
#include "kernels/int8/relu/relu.h"

namespace fuselage::int8::relu {
namespace {

namespace core = kernels::FUSELAGE_AVX512_VNNI;

struct Constants {
  bool same;
  __m128i flip16;
  __m512i flip, zero_point, zero_point8;
  __m512 multiplier;
  core::OutputCodes out;
};

inline __m512 Scaled(const uint8_t* x, const Constants& k) {
  const __m128i codes = _mm_xor_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x)), k.flip16);
  const __m512i centered = _mm512_sub_epi32(_mm512_cvtepu8_epi32(codes), k.zero_point);
  return _mm512_mul_ps(_mm512_cvtepi32_ps(centered), k.multiplier);
}

inline void Relu64(const Constants& k, const uint8_t* x, uint8_t* y) {
  __m512i q;
  if (k.same) {
    q = _mm512_xor_si512(_mm512_max_epu8(_mm512_xor_si512(_mm512_loadu_si512(x), k.flip), k.zero_point8), k.flip);
  } else {
    q = core::ToCodes(Scaled(x, k), Scaled(x + 16, k), Scaled(x + 32, k), Scaled(x + 48, k), k.out);
  }
  _mm512_storeu_si512(y, q);
}

}  // namespace

void FUSELAGE_AVX512_VNNI::Run(const Params& p, const uint8_t* x, uint8_t* y, int64_t n) {
  const Constants k = {p.same,
                       _mm_set1_epi8(static_cast<char>(p.flip_x)),
                       _mm512_set1_epi8(static_cast<char>(p.flip_x)),
                       _mm512_set1_epi32(p.zero_point_x),
                       _mm512_set1_epi8(static_cast<char>(p.zero_point_x)),
                       _mm512_set1_ps(p.multiplier),
                       core::MakeOutputCodes(p.zero_point_y, p.lo, p.hi, p.flip_y)};
  int64_t i = 0;
  for (; i + 64 <= n; i += 64) Relu64(k, x + i, y + i);
  if (i < n) {
    uint8_t tail_x[64] = {}, tail_y[64];
    std::memcpy(tail_x, x + i, n - i);
    Relu64(k, tail_x, tail_y);
    std::memcpy(y + i, tail_y, n - i);
  }
}

}  // namespace fuselage::int8::relu
