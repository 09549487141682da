#include <cstring>

#include "kernels/core/avx512.h"
#include "kernels/int8/linear_groups/linear_groups.h"

namespace fuselage::int8::linear_groups {
namespace {

constexpr int64_t kBlock = 16;
// One row reads weights from memory, whose next lines come while it multiplies: so many bytes ahead.
constexpr int64_t kPrefetchAhead = 16384, kLine = 64;

inline __m512i Broadcast(const int8_t* x) {
  int32_t dword;
  std::memcpy(&dword, x, sizeof(dword));
  return _mm512_set1_epi32(dword);
}

// The scales of group g of the channels of a block. MXFP4's are E8M0, whose half, 2^(scale - 128), is a normal float.
template <Format kFormat>
inline __m512 Factors(const Params& p, int64_t block, int64_t g) {
  const int64_t first = (block * p.groups + g) * kBlock;
  if constexpr (kFormat != Format::kMxfp4) return _mm512_loadu_ps(static_cast<const float*>(p.scale) + first);
  const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(static_cast<const uint8_t*>(p.scale) + first));
  const __m512i exponents = _mm512_sub_epi32(_mm512_cvtepu8_epi32(codes), _mm512_set1_epi32(1));
  return _mm512_castsi512_ps(_mm512_slli_epi32(exponents, 23));
}

// Rows times one block of channels, of which `count` are stored. Not inlined: the caller's constants would take its
// registers.
template <int kRows, Format kFormat>
__attribute__((noinline)) void Tile(const Params& p, int64_t row, int64_t n, int64_t count) {
  int8_t four_times[64];
  for (int i = 0; i < 4; ++i) std::memcpy(four_times + 16 * i, kWeights[kFormat == Format::kInt4], 16);
  const __m512i table = _mm512_loadu_si512(four_times), low_bits = _mm512_set1_epi8(15);
  const int64_t depth = p.depth, unit_bytes = kBlock * p.unit_bytes;
  const uint8_t* weight = p.weight + n * p.groups * p.units * p.unit_bytes;
  const int8_t* x = p.x + row * depth;
  __m512 sums[kRows];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) sums[i] = _mm512_setzero_ps();
  for (int64_t g = 0; g < p.groups; ++g) {
    __m512i group[kRows];
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) group[i] = _mm512_set1_epi32(-p.x_sums[(row + i) * p.groups + g]);
    for (int64_t unit = 0; unit < p.units; ++unit, weight += unit_bytes, x += kUnit) {
      for (int64_t line = 0; kRows == 1 && line < unit_bytes; line += kLine) {
        __builtin_prefetch(weight + kPrefetchAhead + line);
      }
#pragma GCC unroll 4
      for (int step = 0; step < 4; ++step) {  // Eight features each.
        __m512i low, high;                    // The first four and those behind them.
        if constexpr (kFormat == Format::kInt8) {
          low = _mm512_loadu_si512(weight + 2 * step * 4 * kBlock);
          high = _mm512_loadu_si512(weight + (2 * step + 1) * 4 * kBlock);
        } else {
          const __m512i codes = _mm512_loadu_si512(weight + step * 4 * kBlock);
          low = _mm512_shuffle_epi8(table, _mm512_and_si512(codes, low_bits));
          high = _mm512_shuffle_epi8(table, _mm512_and_si512(_mm512_srli_epi16(codes, 4), low_bits));
        }
#pragma GCC unroll 8
        for (int i = 0; i < kRows; ++i) {
          const int8_t* features = x + i * depth + 8 * step;
          group[i] = _mm512_dpbusd_epi32(group[i], low, Broadcast(features));
          group[i] = _mm512_dpbusd_epi32(group[i], high, Broadcast(features + 4));
        }
      }
    }
    const __m512 factor = Factors<kFormat>(p, n / kBlock, g);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) sums[i] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(group[i]), factor, sums[i]);
  }
  const __m512 bias = _mm512_loadu_ps(p.bias + n);
  for (int i = 0; i < kRows; ++i) {
    const __m512 y = _mm512_fmadd_ps(sums[i], _mm512_set1_ps(p.x_scale[row + i]), bias);
    std::memcpy(p.y + (row + i) * p.channels + n, &y, count * sizeof(float));
  }
}

template <Format kFormat>
void RunFormat(const Params& p, const Range& range) {
  for (int64_t n = range.channel_begin; n < range.channel_end; n += kBlock) {
    const int64_t count = range.channel_end - n < kBlock ? range.channel_end - n : kBlock;
    int64_t row = range.row_begin;
    for (; row + 8 <= range.row_end; row += 8) Tile<8, kFormat>(p, row, n, count);
    for (; row < range.row_end; ++row) Tile<1, kFormat>(p, row, n, count);
  }
}

}  // namespace

void FUSELAGE_AVX512_VNNI::Run(const Params& p, const Range& range) {
  switch (p.format) {
    case Format::kMxfp4: return RunFormat<Format::kMxfp4>(p, range);
    case Format::kInt4: return RunFormat<Format::kInt4>(p, range);
    case Format::kInt8: return RunFormat<Format::kInt8>(p, range);
  }
}

}  // namespace fuselage::int8::linear_groups
