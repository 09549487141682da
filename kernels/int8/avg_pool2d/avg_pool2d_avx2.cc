#include <cstring>

#include "kernels/core/avx2.h"
#include "kernels/int8/avg_pool2d/avg_pool2d_rows.h"

namespace fuselage::int8::avg_pool2d {
namespace {

constexpr int kLanes = 8, kAll = 32;

struct Constants {
  __m256i flip;
  kernels::avx2::OutputCodes out;
};

inline __m256i Widen(__m128i codes) { return _mm256_cvtepu8_epi32(codes); }

// `count` channels from `c`: 8 to 32. Fewer than these go by eights, of which the last begins among those before.
inline void Average32(const Params& p, const Constants& k, const PixelWindow& w, int64_t c, int64_t count, uint8_t* y) {
  const __m256i start = _mm256_set1_epi32(static_cast<int32_t>(-p.zero_point_x * w.taps()));
  __m256i sum0 = start, sum1 = start, sum2 = start, sum3 = start;
  const int64_t last = count - kLanes;
  const auto for_taps = [&](auto add) {
    for (int64_t i = 0; i < w.taps_y; ++i) {
      const uint8_t* tap = w.first + i * w.step_y + c;
      for (int64_t j = 0; j < w.taps_x; ++j, tap += w.step_x) add(tap);
    }
  };
  if (count == kAll) {
    for_taps([&](const uint8_t* tap) {
      const __m256i codes = _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(tap)), k.flip);
      const __m128i low = _mm256_castsi256_si128(codes), high = _mm256_extracti128_si256(codes, 1);
      sum0 = _mm256_add_epi32(sum0, Widen(low));
      sum1 = _mm256_add_epi32(sum1, Widen(_mm_srli_si128(low, kLanes)));
      sum2 = _mm256_add_epi32(sum2, Widen(high));
      sum3 = _mm256_add_epi32(sum3, Widen(_mm_srli_si128(high, kLanes)));
    });
  } else {
    for_taps([&](const uint8_t* tap) {
      const auto load = [&](int64_t channel) {
        const __m128i codes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(tap + channel));
        return Widen(_mm_xor_si128(codes, _mm256_castsi256_si128(k.flip)));
      };
      sum3 = _mm256_add_epi32(sum3, load(last));
      if (last > 0) sum0 = _mm256_add_epi32(sum0, load(0));
      if (last > kLanes) sum1 = _mm256_add_epi32(sum1, load(kLanes));
      if (last > 2 * kLanes) sum2 = _mm256_add_epi32(sum2, load(2 * kLanes));
    });
  }
  const __m256 m = _mm256_set1_ps(w.multiplier);
  const __m256i q = kernels::avx2::ToCodes(
      _mm256_mul_ps(_mm256_cvtepi32_ps(sum0), m), _mm256_mul_ps(_mm256_cvtepi32_ps(sum1), m),
      _mm256_mul_ps(_mm256_cvtepi32_ps(sum2), m), _mm256_mul_ps(_mm256_cvtepi32_ps(sum3), m), k.out);
  y += c;
  if (count == kAll) return _mm256_storeu_si256(reinterpret_cast<__m256i*>(y), q);
  uint8_t block[kAll];
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(block), q);
  for (int64_t channel = 0; channel < last; channel += kLanes) std::memcpy(y + channel, block + channel, kLanes);
  std::memcpy(y + last, block + kAll - kLanes, kLanes);
}

}  // namespace

void avx2::Run(const Params& p, const uint8_t* x, uint8_t* y, int64_t row_begin, int64_t row_end) {
  const Constants k = {_mm256_set1_epi8(static_cast<char>(p.flip_x)),
                       kernels::avx2::MakeOutputCodes(p.zero_point_y, p.lo, p.hi, p.flip_y)};
  const int64_t channels = p.window.channels;
  if (channels < kLanes) return scalar::Run(p, x, y, row_begin, row_end);
  AverageRows(p, x, y, row_begin, row_end, [&](const PixelWindow& w, uint8_t* out) {
    for (int64_t c = 0, count; c < channels; c += count) {
      if (c + kLanes > channels) c = channels - kLanes;  // Some channels again.
      count = channels - c < kAll ? channels - c : kAll;
      Average32(p, k, w, c, count, out);
    }
  });
}

}  // namespace fuselage::int8::avg_pool2d
