#include "kernels/core/avx512.h"
#include "kernels/int8/avg_pool2d/avg_pool2d_rows.h"

namespace fuselage::int8::avg_pool2d {
namespace {

namespace core = kernels::FUSELAGE_AVX512_VNNI;

struct Constants {
  __m512i flip;
  core::OutputCodes out;
};

// `count` channels from `c`, at most 64. Four taps of a row side by side are a dot product with ones. What the unpacks
// leave in lane l of sum i are channels 16*l + 4*i to 16*l + 4*i + 3, which the packs of ToCodes put into order.
inline void Average64(const Params& p, const Constants& k, const PixelWindow& w, int64_t c, int64_t count, uint8_t* y) {
  const uint64_t existing = ~uint64_t{0} >> (64 - count);
  const __m512i ones = _mm512_set1_epi8(1), zero = _mm512_setzero_si512();
  const __m512i start = _mm512_set1_epi32(static_cast<int32_t>(-p.zero_point_x * w.taps()));
  const int64_t step_x = w.step_x;
  __m512i sum0 = start, sum1 = start, sum2 = start, sum3 = start;
  for (int64_t i = 0; i < w.taps_y; ++i) {
    const uint8_t* tap = w.first + i * w.step_y + c;
    for (int64_t left = w.taps_x; left > 0; left -= 4, tap += 4 * step_x) {
      const auto load = [&](int j) {
        if (j >= left) return zero;
        const __m512i codes = _mm512_maskz_loadu_epi8(existing, tap + j * step_x);
        return _mm512_xor_si512(codes, k.flip);
      };
      const __m512i t0 = load(0), t1 = load(1), t2 = load(2), t3 = load(3);
      const __m512i low01 = _mm512_unpacklo_epi8(t0, t1), low23 = _mm512_unpacklo_epi8(t2, t3);
      const __m512i high01 = _mm512_unpackhi_epi8(t0, t1), high23 = _mm512_unpackhi_epi8(t2, t3);
      sum0 = _mm512_dpbusd_epi32(sum0, _mm512_unpacklo_epi16(low01, low23), ones);
      sum1 = _mm512_dpbusd_epi32(sum1, _mm512_unpackhi_epi16(low01, low23), ones);
      sum2 = _mm512_dpbusd_epi32(sum2, _mm512_unpacklo_epi16(high01, high23), ones);
      sum3 = _mm512_dpbusd_epi32(sum3, _mm512_unpackhi_epi16(high01, high23), ones);
    }
  }
  const __m512 m = _mm512_set1_ps(w.multiplier);
  const __m512i q =
      core::ToCodes(_mm512_mul_ps(_mm512_cvtepi32_ps(sum0), m), _mm512_mul_ps(_mm512_cvtepi32_ps(sum1), m),
                    _mm512_mul_ps(_mm512_cvtepi32_ps(sum2), m), _mm512_mul_ps(_mm512_cvtepi32_ps(sum3), m), k.out);
  _mm512_mask_storeu_epi8(y + c, existing, q);
}

}  // namespace

void FUSELAGE_AVX512_VNNI::Run(const Params& p, const uint8_t* x, uint8_t* y, int64_t row_begin, int64_t row_end) {
  Constants k = {_mm512_set1_epi8(static_cast<char>(p.flip_x)),
                 core::MakeOutputCodes(p.zero_point_y, p.lo, p.hi, p.flip_y)};
  k.out.order = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const int64_t channels = p.window.channels;
  AverageRows(p, x, y, row_begin, row_end, [&](const PixelWindow& w, uint8_t* out) {
    int64_t c = 0;
    for (; c + 64 <= channels; c += 64) Average64(p, k, w, c, 64, out);
    if (c < channels) Average64(p, k, w, c, channels - c, out);
  });
}

}  // namespace fuselage::int8::avg_pool2d
