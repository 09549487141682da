// The matrix product in AVX-512: up to 6 rows by 4 panels of 16 output channels, all in registers. Everything is local
// to the including source.
#ifndef FUSELAGE_KERNELS_CORE_MULTIPLY_MULTIPLY_AVX512_H_
#define FUSELAGE_KERNELS_CORE_MULTIPLY_MULTIPLY_AVX512_H_

#include <string.h>

#include "kernels/core/avx512.h"
#include "kernels/core/multiply/multiply.h"

namespace fuselage::kernels {
namespace {

inline int LoadDword(const void* p) {
  int v;
  memcpy(&v, p, sizeof(v));
  return v;
}

// Four products u8 * i8 by vpdpbusd, exactly: vpdpbusds would saturate.
struct ByteProduct {
  static inline __m512i Add(__m512i sum, __m512i x, __m512i weights) { return _mm512_dpbusd_epi32(sum, x, weights); }
};

// Stores a row of a tile's sums.
struct StoreSums {
  const Multiply& m;
  template <int kPanels>
  __attribute__((always_inline)) void operator()(int row, const __m512i (&sums)[kPanels]) const {
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) _mm512_storeu_si512(m.c + row * m.c_stride + p * kPanel, sums[p]);
  }
};

// Product::Add(sum, a, b) adds the products of four bytes of a and of b, to each lane; finish(row, sums) takes a row's.
// kScattered: m.row_offsets says where rows are, which costs a few percent. Not inlined: GCC 12 would keep the sums in
// memory besides.
template <typename Product, int kRows, int kPanels, bool kScattered, typename Finish>
__attribute__((noinline)) void MultiplyTile(const Multiply& m, const Finish& finish) {
  __m512i sum[kRows][kPanels];
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
      sum[r][p] = m.accumulate ? _mm512_loadu_si512(m.c + r * m.c_stride + p * kPanel) : _mm512_setzero_si512();
    }
  }
  const char* b = static_cast<const char*>(m.b);
  const int64_t stride = m.a_stride, b_stride = m.b_stride;
  const char* scattered[kRows];
  if (kScattered) {
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) scattered[r] = static_cast<const char*>(m.a) + m.row_offsets[r];
  }
  for (int64_t d = 0; d < m.depth; ++d, b += kPanelBytes) {
    const char* a = static_cast<const char*>(m.a) + m.offsets[d];
    const char* a3 = a + 3 * stride;
    __m512i weights[kPanels];
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) weights[p] = _mm512_loadu_si512(b + p * b_stride);
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      const char* even = r < 3 ? a + r * stride : a3 + (r - 3) * stride;
      const __m512i x = _mm512_set1_epi32(LoadDword(kScattered ? scattered[r] + m.offsets[d] : even));
#pragma GCC unroll 4
      for (int p = 0; p < kPanels; ++p) sum[r][p] = Product::Add(sum[r][p], x, weights[p]);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) finish(r, sum[r]);
}

template <typename Product, int kPanels, bool kScattered = false, typename Finish>
void MultiplyRows(const Multiply& m, const Finish& finish) {
  switch (m.rows) {
    case 1: return MultiplyTile<Product, 1, kPanels, kScattered>(m, finish);
    case 2: return MultiplyTile<Product, 2, kPanels, kScattered>(m, finish);
    case 3: return MultiplyTile<Product, 3, kPanels, kScattered>(m, finish);
    case 4: return MultiplyTile<Product, 4, kPanels, kScattered>(m, finish);
    case 5: return MultiplyTile<Product, 5, kPanels, kScattered>(m, finish);
    default: return MultiplyTile<Product, 6, kPanels, kScattered>(m, finish);
  }
}
template <typename Product, int kPanels>
void MultiplyRows(const Multiply& m) {
  MultiplyRows<Product, kPanels>(m, StoreSums{m});
}

template <typename Product, bool kScattered = false, typename Finish>
void MultiplyPanels(const Multiply& m, const Finish& finish) {
  switch (m.panels) {
    case 1: return MultiplyRows<Product, 1, kScattered>(m, finish);
    case 2: return MultiplyRows<Product, 2, kScattered>(m, finish);
    case 3: return MultiplyRows<Product, 3, kScattered>(m, finish);
    default: return MultiplyRows<Product, 4, kScattered>(m, finish);
  }
}
template <typename Product, bool kScattered = false>
void MultiplyPanels(const Multiply& m) {
  MultiplyPanels<Product, kScattered>(m, StoreSums{m});
}

}  // namespace
}  // namespace fuselage::kernels

#endif  // FUSELAGE_KERNELS_CORE_MULTIPLY_MULTIPLY_AVX512_H_
