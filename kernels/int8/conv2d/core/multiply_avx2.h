// The matrix product of the variants with 8 lanes of int32: up to 6 rows by one panel of 16 output channels, all in
// registers. Everything is local to the including source: see loops.h.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CORE_MULTIPLY_AVX2_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CORE_MULTIPLY_AVX2_H_

#include <string.h>

#include "kernels/core/avx2.h"
#include "kernels/int8/conv2d/core/loops.h"

namespace fuselage::int8::conv2d {
namespace {

// Two products of int16, which vpmaddwd adds exactly.
struct WordProduct {
  static inline __m256i Add(__m256i sum, __m256i x, __m256i weights) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(x, weights));
  }
};

inline __m256i LoadVector(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
inline void StoreVector(void* p, __m256i v) { _mm256_storeu_si256(static_cast<__m256i*>(p), v); }
inline int LoadDword(const void* p) {
  int v;
  memcpy(&v, p, sizeof(v));
  return v;
}

// kRows x 16 sums in 2*kRows <= 12 registers, two of weights, one broadcast dword and one product: all 16. A step of
// six rows is 12 products and 8 loads: six cycles where two multiplications start per cycle. What else a step takes
// counts where threads share a core: twice unrolled it is two instructions. kHalves: of a panel.
template <typename Product, int kRows, int kHalves>
void MultiplyTile(const Multiply& m) {
  __m256i sum[kRows][kHalves];
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int half = 0; half < kHalves; ++half) {
      sum[r][half] = m.accumulate ? LoadVector(m.c + r * m.c_stride + 8 * half) : _mm256_setzero_si256();
    }
  }
  const char* b = static_cast<const char*>(m.b);
  const int64_t stride = m.a_stride;
  int64_t run = m.first_run;
  for (int64_t d = 0; d < m.depth; d += run, run = m.run) {
    if (run == 0 || run > m.depth - d) run = m.depth - d;
    const char* a = static_cast<const char*>(m.a) + m.offsets[d];
    const char* a3 = a + 3 * stride;
#pragma GCC unroll 2
    for (const char* const end = b + run * kPanelBytes; b < end; b += kPanelBytes) {
      const __m256i weights[2] = {LoadVector(b), LoadVector(b + 32)};
#pragma GCC unroll 6
      for (int r = 0; r < kRows; ++r) {
        const __m256i x = _mm256_set1_epi32(LoadDword(r < 3 ? a + r * stride : a3 + (r - 3) * stride));
#pragma GCC unroll 2
        for (int half = 0; half < kHalves; ++half) sum[r][half] = Product::Add(sum[r][half], x, weights[half]);
      }
      a += kDwordBytes;
      a3 += kDwordBytes;
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int half = 0; half < kHalves; ++half) StoreVector(m.c + r * m.c_stride + 8 * half, sum[r][half]);
  }
}

template <typename Product>
void MultiplyRows(const Multiply& m) {
  switch (m.rows) {
    case 1: return MultiplyTile<Product, 1, 2>(m);
    case 2: return MultiplyTile<Product, 2, 2>(m);
    case 3: return MultiplyTile<Product, 3, 2>(m);
    case 4: return MultiplyTile<Product, 4, 2>(m);
    case 5: return MultiplyTile<Product, 5, 2>(m);
    default: return MultiplyTile<Product, 6, 2>(m);
  }
}

// Half a panel of more than kFewRows rows. Fewer are rare: they take all of it.
constexpr int kFewRows = 3;
template <typename Product>
void MultiplyHalfRows(const Multiply& m) {
  switch (m.rows) {
    case 4: return MultiplyTile<Product, 4, 1>(m);
    case 5: return MultiplyTile<Product, 5, 1>(m);
    default: return MultiplyTile<Product, 6, 1>(m);
  }
}

// Any number of rows, in tiles that differ by one at most.
template <typename Product>
void MultiplyTiles(const Multiply& all) {
  Multiply m = all;
  for (int left = all.rows, tiles = (left + kMaxRows - 1) / kMaxRows; left > 0; left -= m.rows, --tiles) {
    m.rows = left / tiles;
    m.half && m.rows > kFewRows ? MultiplyHalfRows<Product>(m) : MultiplyRows<Product>(m);
    m.a = static_cast<const char*>(m.a) + m.rows * m.a_stride;
    m.c += m.rows * m.c_stride;
  }
}

}  // namespace
}  // namespace fuselage::int8::conv2d

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CORE_MULTIPLY_AVX2_H_
