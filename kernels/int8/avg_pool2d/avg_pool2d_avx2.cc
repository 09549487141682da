#include <cstring>

#include "kernels/core/avx2.h"
#include "kernels/int8/avg_pool2d/avg_pool2d_rows.h"

namespace fuselage::int8::avg_pool2d {
namespace {

struct Constants {
  __m256i flip;
  kernels::avx2::OutputCodes out;
};

inline __m256i Widen(__m128i codes) { return _mm256_cvtepu8_epi32(codes); }

// `count` channels from `c`, at most 32.
inline void Average32(const Params& p, const Constants& k, const PixelWindow& w, int64_t c, int64_t count, uint8_t* y) {
  const __m256i start = _mm256_set1_epi32(static_cast<int32_t>(-p.zero_point_x * w.taps()));
  __m256i sum0 = start, sum1 = start, sum2 = start, sum3 = start;
  uint8_t block[32] = {};
  for (int64_t i = 0; i < w.taps_y; ++i) {
    const uint8_t* tap = w.first + i * w.step_y + c;
    for (int64_t j = 0; j < w.taps_x; ++j, tap += w.step_x) {
      const uint8_t* from = tap;
      if (count < 32) {
        std::memcpy(block, tap, count);
        from = block;
      }
      const __m256i codes = _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)), k.flip);
      const __m128i low = _mm256_castsi256_si128(codes), high = _mm256_extracti128_si256(codes, 1);
      sum0 = _mm256_add_epi32(sum0, Widen(low));
      sum1 = _mm256_add_epi32(sum1, Widen(_mm_srli_si128(low, 8)));
      sum2 = _mm256_add_epi32(sum2, Widen(high));
      sum3 = _mm256_add_epi32(sum3, Widen(_mm_srli_si128(high, 8)));
    }
  }
  const __m256 m = _mm256_set1_ps(w.multiplier);
  const __m256i q = kernels::avx2::ToCodes(
      _mm256_mul_ps(_mm256_cvtepi32_ps(sum0), m), _mm256_mul_ps(_mm256_cvtepi32_ps(sum1), m),
      _mm256_mul_ps(_mm256_cvtepi32_ps(sum2), m), _mm256_mul_ps(_mm256_cvtepi32_ps(sum3), m), k.out);
  if (count == 32) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(y + c), q);
  } else {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(block), q);
    std::memcpy(y + c, block, count);
  }
}

}  // namespace

void avx2::Run(const Params& p, const uint8_t* x, uint8_t* y, int64_t row_begin, int64_t row_end) {
  const Constants k = {_mm256_set1_epi8(static_cast<char>(p.flip_x)),
                       kernels::avx2::MakeOutputCodes(p.zero_point_y, p.lo, p.hi, p.flip_y)};
  const int64_t channels = p.window.channels;
  AverageRows(p, x, y, row_begin, row_end, [&](const PixelWindow& w, uint8_t* out) {
    int64_t c = 0;
    for (; c + 32 <= channels; c += 32) Average32(p, k, w, c, 32, out);
    if (c < channels) Average32(p, k, w, c, channels - c, out);
  });
}

}  // namespace fuselage::int8::avg_pool2d
