#include <cstring>

#include "kernels/core/avx512.h"
#include "kernels/int8/linear_mxfp4/linear_mxfp4.h"

namespace fuselage::int8::linear_mxfp4 {
namespace {

constexpr int64_t kBlock = 16;

inline __m512i Broadcast(const int8_t* x) {
  int32_t dword;
  std::memcpy(&dword, x, sizeof(dword));
  return _mm512_set1_epi32(dword);
}

// Rows times one block of channels, of which `count` are stored. Not inlined: the caller's constants would take its
// registers.
template <int kRows>
__attribute__((noinline)) void Tile(const Params& p, int64_t row, int64_t n, int64_t count) {
  int8_t four_times[64];
  for (int i = 0; i < 4; ++i) std::memcpy(four_times + 16 * i, kWeights, 16);
  const __m512i table = _mm512_loadu_si512(four_times), low_bits = _mm512_set1_epi8(15);
  const int64_t depth = p.groups * kGroup;
  const uint8_t *weight = p.weight + n * depth / 2, *scale = p.scale + n * p.groups;
  const int8_t* x = p.x + row * depth;
  __m512 sums[kRows];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) sums[i] = _mm512_setzero_ps();
  for (int64_t g = 0; g < p.groups; ++g, weight += kBlock * kGroup / 2, scale += kBlock) {
    __m512i group[kRows];
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) group[i] = _mm512_set1_epi32(-p.x_sums[(row + i) * p.groups + g]);
#pragma GCC unroll 4
    for (int step = 0; step < 4; ++step) {  // Eight features each.
      const __m512i codes = _mm512_loadu_si512(weight + step * 4 * kBlock);
      const __m512i low = _mm512_shuffle_epi8(table, _mm512_and_si512(codes, low_bits));
      const __m512i high = _mm512_shuffle_epi8(table, _mm512_and_si512(_mm512_srli_epi16(codes, 4), low_bits));
#pragma GCC unroll 8
      for (int i = 0; i < kRows; ++i) {
        const int8_t* features = x + i * depth + g * kGroup + 8 * step;
        group[i] = _mm512_dpbusd_epi32(group[i], low, Broadcast(features));
        group[i] = _mm512_dpbusd_epi32(group[i], high, Broadcast(features + 4));
      }
    }
    // The bits of 2^(scale - 128), which is normal.
    const __m512i exponents = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(scale)));
    const __m512 factor = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_sub_epi32(exponents, _mm512_set1_epi32(1)), 23));
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) sums[i] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(group[i]), factor, sums[i]);
  }
  const __m512 bias = _mm512_loadu_ps(p.bias + n);
  for (int i = 0; i < kRows; ++i) {
    const __m512 y = _mm512_fmadd_ps(sums[i], _mm512_set1_ps(p.x_scale[row + i]), bias);
    std::memcpy(p.y + (row + i) * p.channels + n, &y, count * sizeof(float));
  }
}

}  // namespace

void FUSELAGE_AVX512_VNNI::Run(const Params& p, const Range& range) {
  for (int64_t n = range.channel_begin; n < range.channel_end; n += kBlock) {
    const int64_t count = range.channel_end - n < kBlock ? range.channel_end - n : kBlock;
    int64_t row = range.row_begin;
    for (; row + 8 <= range.row_end; row += 8) Tile<8>(p, row, n, count);
    for (; row < range.row_end; ++row) Tile<1>(p, row, n, count);
  }
}

}  // namespace fuselage::int8::linear_mxfp4
