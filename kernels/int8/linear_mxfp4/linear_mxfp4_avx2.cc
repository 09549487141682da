#include <immintrin.h>

#include <cstring>

#include "kernels/int8/linear_mxfp4/linear_mxfp4.h"

namespace fuselage::int8::linear_mxfp4 {
namespace {

constexpr int64_t kBlock = 8;

inline __m256i Broadcast(const int8_t* x) {
  int32_t dword;
  std::memcpy(&dword, x, sizeof(dword));
  return _mm256_set1_epi32(dword);
}

// Rows times one block of channels, of which `count` are stored. Not inlined: the caller's constants would take its
// registers.
template <int kRows>
__attribute__((noinline)) void Tile(const Params& p, int64_t row, int64_t n, int64_t count) {
  const __m256i table = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(kWeights)));
  const __m256i low_bits = _mm256_set1_epi8(15), ones = _mm256_set1_epi16(1);
  const int64_t depth = p.groups * kGroup;
  const uint8_t *weight = p.weight + n * depth / 2, *scale = p.scale + n * p.groups;
  const int8_t* x = p.x + row * depth;
  __m256 sums[kRows];
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) sums[i] = _mm256_setzero_ps();
  for (int64_t g = 0; g < p.groups; ++g, weight += kBlock * kGroup / 2, scale += kBlock) {
    __m256i group[kRows];
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) group[i] = _mm256_set1_epi32(-p.x_sums[(row + i) * p.groups + g]);
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {  // Sixteen features each.
      __m256i w[4];
#pragma GCC unroll 2
      for (int step = 0; step < 2; ++step) {
        const uint8_t* bytes = weight + (2 * half + step) * 4 * kBlock;
        const __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes));
        w[2 * step] = _mm256_shuffle_epi8(table, _mm256_and_si256(codes, low_bits));
        w[2 * step + 1] = _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(codes, 4), low_bits));
      }
#pragma GCC unroll 4
      for (int i = 0; i < kRows; ++i) {
        const int8_t* features = x + i * depth + g * kGroup + 16 * half;
        const __m256i a = _mm256_add_epi16(_mm256_maddubs_epi16(w[0], Broadcast(features)),
                                           _mm256_maddubs_epi16(w[1], Broadcast(features + 4)));
        const __m256i b = _mm256_add_epi16(_mm256_maddubs_epi16(w[2], Broadcast(features + 8)),
                                           _mm256_maddubs_epi16(w[3], Broadcast(features + 12)));
        group[i] = _mm256_add_epi32(group[i], _mm256_madd_epi16(_mm256_add_epi16(a, b), ones));
      }
    }
    // The bits of 2^(scale - 128), which is normal.
    const __m256i exponents = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(scale)));
    const __m256 factor = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_sub_epi32(exponents, _mm256_set1_epi32(1)), 23));
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) sums[i] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(group[i]), factor, sums[i]);
  }
  const __m256 bias = _mm256_loadu_ps(p.bias + n);
  for (int i = 0; i < kRows; ++i) {
    const __m256 y = _mm256_fmadd_ps(sums[i], _mm256_set1_ps(p.x_scale[row + i]), bias);
    std::memcpy(p.y + (row + i) * p.channels + n, &y, count * sizeof(float));
  }
}

}  // namespace

void avx2::Run(const Params& p, const Range& range) {
  for (int64_t n = range.channel_begin; n < range.channel_end; n += kBlock) {
    const int64_t count = range.channel_end - n < kBlock ? range.channel_end - n : kBlock;
    int64_t row = range.row_begin;
    for (; row + 4 <= range.row_end; row += 4) Tile<4>(p, row, n, count);
    for (; row < range.row_end; ++row) Tile<1>(p, row, n, count);
  }
}

}  // namespace fuselage::int8::linear_mxfp4
