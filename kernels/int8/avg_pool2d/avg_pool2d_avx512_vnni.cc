#include <cstring>

#include "kernels/core/avx512.h"
#include "kernels/int8/avg_pool2d/avg_pool2d_rows.h"

namespace fuselage::int8::avg_pool2d {
namespace {

namespace core = kernels::FUSELAGE_AVX512_VNNI;

struct Constants {
  __m128i flip;
  core::OutputCodes out;
};

inline __m512i Widen(const uint8_t* x, __m128i flip) {
  return _mm512_cvtepu8_epi32(_mm_xor_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x)), flip));
}

// `count` channels from `c`, at most 64.
inline void Average64(const Params& p, const Constants& k, const PixelWindow& w, int64_t c, int64_t count, uint8_t* y) {
  const __m512i start = _mm512_set1_epi32(static_cast<int32_t>(-p.zero_point_x * w.taps()));
  __m512i sum0 = start, sum1 = start, sum2 = start, sum3 = start;
  uint8_t block[64] = {};
  for (int64_t i = 0; i < w.taps_y; ++i) {
    const uint8_t* tap = w.first + i * w.step_y + c;
    for (int64_t j = 0; j < w.taps_x; ++j, tap += w.step_x) {
      const uint8_t* from = tap;
      if (count < 64) {
        std::memcpy(block, tap, count);
        from = block;
      }
      sum0 = _mm512_add_epi32(sum0, Widen(from, k.flip));
      sum1 = _mm512_add_epi32(sum1, Widen(from + 16, k.flip));
      sum2 = _mm512_add_epi32(sum2, Widen(from + 32, k.flip));
      sum3 = _mm512_add_epi32(sum3, Widen(from + 48, k.flip));
    }
  }
  const __m512 m = _mm512_set1_ps(w.multiplier);
  const __m512i q =
      core::ToCodes(_mm512_mul_ps(_mm512_cvtepi32_ps(sum0), m), _mm512_mul_ps(_mm512_cvtepi32_ps(sum1), m),
                    _mm512_mul_ps(_mm512_cvtepi32_ps(sum2), m), _mm512_mul_ps(_mm512_cvtepi32_ps(sum3), m), k.out);
  if (count == 64) {
    _mm512_storeu_si512(y + c, q);
  } else {
    _mm512_storeu_si512(block, q);
    std::memcpy(y + c, block, count);
  }
}

}  // namespace

void FUSELAGE_AVX512_VNNI::Run(const Params& p, const uint8_t* x, uint8_t* y, int64_t row_begin, int64_t row_end) {
  const Constants k = {_mm_set1_epi8(static_cast<char>(p.flip_x)),
                       core::MakeOutputCodes(p.zero_point_y, p.lo, p.hi, p.flip_y)};
  const int64_t channels = p.window.channels;
  AverageRows(p, x, y, row_begin, row_end, [&](const PixelWindow& w, uint8_t* out) {
    int64_t c = 0;
    for (; c + 64 <= channels; c += 64) Average64(p, k, w, c, 64, out);
    if (c < channels) Average64(p, k, w, c, channels - c, out);
  });
}

}  // namespace fuselage::int8::avg_pool2d
