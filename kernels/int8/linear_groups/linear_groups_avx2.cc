#include <immintrin.h>

#include <cstring>

#include "kernels/int8/linear_groups/linear_groups.h"

namespace fuselage::int8::linear_groups {
namespace {

constexpr int64_t kBlock = 8;
// One row reads weights from memory, whose next lines come while it multiplies: so many bytes ahead.
constexpr int64_t kPrefetchAhead = 2048, kLine = 64;

inline __m256i Broadcast(const int8_t* x) {
  int32_t dword;
  std::memcpy(&dword, x, sizeof(dword));
  return _mm256_set1_epi32(dword);
}

inline __m256i Load(const uint8_t* bytes) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes)); }

// Sixteen features: pairs of four products each.
inline __m256i Products(const __m256i* weights, const int8_t* features) {
  const __m256i a = _mm256_add_epi16(_mm256_maddubs_epi16(weights[0], Broadcast(features)),
                                     _mm256_maddubs_epi16(weights[1], Broadcast(features + 4)));
  const __m256i b = _mm256_add_epi16(_mm256_maddubs_epi16(weights[2], Broadcast(features + 8)),
                                     _mm256_maddubs_epi16(weights[3], Broadcast(features + 12)));
  return _mm256_add_epi16(a, b);
}

// The scales of group g of the channels of a block. MXFP4's are E8M0, whose half, 2^(scale - 128), is a normal float.
template <Format kFormat>
inline __m256 Factors(const Params& p, int64_t block, int64_t g) {
  const int64_t first = (block * p.groups + g) * kBlock;
  if constexpr (kFormat != Format::kMxfp4) return _mm256_loadu_ps(static_cast<const float*>(p.scale) + first);
  const __m128i codes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(static_cast<const uint8_t*>(p.scale) + first));
  const __m256i exponents = _mm256_sub_epi32(_mm256_cvtepu8_epi32(codes), _mm256_set1_epi32(1));
  return _mm256_castsi256_ps(_mm256_slli_epi32(exponents, 23));
}

// Rows times one block of channels, of which `count` are stored. Not inlined: the caller's constants would take its
// registers.
template <int kRows, Format kFormat>
__attribute__((noinline)) void Tile(const Params& p, int64_t row, int64_t n, int64_t count) {
  const __m256i table = _mm256_broadcastsi128_si256(
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(kWeights[kFormat == Format::kInt4])));
  const __m256i low_bits = _mm256_set1_epi8(15), ones = _mm256_set1_epi16(1), sixteens = _mm256_set1_epi16(16);
  const int64_t depth = p.depth, unit_bytes = kBlock * p.unit_bytes;
  const uint8_t* weight = p.weight + n * p.groups * p.units * p.unit_bytes;
  const int8_t* x = p.x + row * depth;
  __m256 sums[kRows];
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) sums[i] = _mm256_setzero_ps();
  for (int64_t g = 0; g < p.groups; ++g) {
    __m256i group[kRows];
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) group[i] = _mm256_set1_epi32(-p.x_sums[(row + i) * p.groups + g]);
    for (int64_t unit = 0; unit < p.units; ++unit, weight += unit_bytes, x += kUnit) {
      for (int64_t line = 0; kRows == 1 && line < unit_bytes; line += kLine) {
        _mm_prefetch(reinterpret_cast<const char*>(weight + kPrefetchAhead + line), _MM_HINT_T0);
      }
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {  // Sixteen features each.
        __m256i low[4], high[4];              // Of bytes; codes of four bits are in `low`.
#pragma GCC unroll 4
        for (int step = 0; step < 4; ++step) {
          if constexpr (kFormat == Format::kInt8) {
            const __m256i bytes = Load(weight + (4 * half + step) * 4 * kBlock);
            low[step] = _mm256_and_si256(bytes, low_bits);
            high[step] = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), low_bits);
          } else {
            const __m256i codes = Load(weight + (2 * half + step / 2) * 4 * kBlock);
            const __m256i shifted = step % 2 == 0 ? codes : _mm256_srli_epi16(codes, 4);
            low[step] = _mm256_shuffle_epi8(table, _mm256_and_si256(shifted, low_bits));
          }
        }
#pragma GCC unroll 4
        for (int i = 0; i < kRows; ++i) {
          const int8_t* features = x + i * depth + 16 * half;
          group[i] = _mm256_add_epi32(group[i], _mm256_madd_epi16(Products(low, features), ones));
          if constexpr (kFormat == Format::kInt8) {
            group[i] = _mm256_add_epi32(group[i], _mm256_madd_epi16(Products(high, features), sixteens));
          }
        }
      }
    }
    const __m256 factor = Factors<kFormat>(p, n / kBlock, g);
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) sums[i] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(group[i]), factor, sums[i]);
  }
  const __m256 bias = _mm256_loadu_ps(p.bias + n);
  for (int i = 0; i < kRows; ++i) {
    const __m256 y = _mm256_fmadd_ps(sums[i], _mm256_set1_ps(p.x_scale[row + i]), bias);
    std::memcpy(p.y + (row + i) * p.channels + n, &y, count * sizeof(float));
  }
}

template <Format kFormat>
void RunFormat(const Params& p, const Range& range) {
  for (int64_t n = range.channel_begin; n < range.channel_end; n += kBlock) {
    const int64_t count = range.channel_end - n < kBlock ? range.channel_end - n : kBlock;
    int64_t row = range.row_begin;
    for (; row + 4 <= range.row_end; row += 4) Tile<4, kFormat>(p, row, n, count);
    for (; row < range.row_end; ++row) Tile<1, kFormat>(p, row, n, count);
  }
}

}  // namespace

void avx2::Run(const Params& p, const Range& range) {
  switch (p.format) {
    case Format::kMxfp4: return RunFormat<Format::kMxfp4>(p, range);
    case Format::kInt4: return RunFormat<Format::kInt4>(p, range);
    case Format::kInt8: return RunFormat<Format::kInt8>(p, range);
  }
}

}  // namespace fuselage::int8::linear_groups
