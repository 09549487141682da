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

// How a tile begins and ends: with sums that are kept in m.c.
struct KeepSums {
  const Multiply& m;
  __attribute__((always_inline)) __m512i Start(int row, int panel) const {
    return m.accumulate ? _mm512_loadu_si512(m.c + row * m.c_stride + panel * kPanel) : _mm512_setzero_si512();
  }
  template <int kRows, int kPanels>
  __attribute__((always_inline)) void Finish(const __m512i (&sums)[kRows][kPanels]) const {
    int32_t* const c = m.c;  // For all that GCC knows, a store may change m.
    const int64_t stride = m.c_stride;
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int p = 0; p < kPanels; ++p) _mm512_storeu_si512(c + r * stride + p * kPanel, sums[r][p]);
    }
  }
};

// Product::Add(sum, a, b) adds the products of four bytes of a and of b, to each lane; ends.Start and ends.Finish make
// and take the sums. kScattered: m.row_offsets says where rows are. Not inlined: GCC 12 would keep the sums in memory
// besides.
template <typename Product, int kRows, int kPanels, bool kScattered, typename Ends>
__attribute__((noinline)) void MultiplyTile(const Multiply& m, const Ends& ends) {
  __m512i sum[kRows][kPanels];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) sum[r][p] = ends.Start(r, p);
  }
  const char *b = static_cast<const char*>(m.b), *next = static_cast<const char*>(m.next);
  const int64_t stride = m.a_stride, b_stride = m.b_stride;
  const char* scattered[kRows];
  if (kScattered) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      scattered[r] = static_cast<const char*>(m.a) + m.row_offsets[r];
      asm("" : "+r"(scattered[r]));  // Else m.a takes a register in the loop besides.
    }
  }
  const char* const row = static_cast<const char*>(m.a);
  const int64_t* const end = m.offsets + m.depth;
  for (const int64_t* offset = m.offsets; offset < end; ++offset, b += kPanelBytes) {
    const char* a = row + *offset;
    const char* blocks[] = {a, a + 3 * stride, a + 6 * stride, a + 9 * stride, a + 12 * stride};
    if (next != nullptr) {
      __builtin_prefetch(next, /*rw=*/0, /*locality=*/2);
      next += kPanelBytes;
    }
    __m512i weights[kPanels];
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) weights[p] = _mm512_loadu_si512(b + p * b_stride);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const char* even = blocks[r / 3] + r % 3 * stride;
      const __m512i x = _mm512_set1_epi32(LoadDword(kScattered ? scattered[r] + *offset : even));
#pragma GCC unroll 4
      for (int p = 0; p < kPanels; ++p) sum[r][p] = Product::Add(sum[r][p], x, weights[p]);
    }
  }
  // What follows may run out of registers, for which GCC 12 would spill in the loop above.
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) FUSELAGE_AVX512_VNNI::EndLiveRange(sum[r][p]);
  }
  ends.Finish(sum);
}

template <typename Product, int kPanels, bool kScattered = false, typename Ends>
void MultiplyRows(const Multiply& m, const Ends& ends) {
  switch (m.rows) {
    case 1: return MultiplyTile<Product, 1, kPanels, kScattered>(m, ends);
    case 2: return MultiplyTile<Product, 2, kPanels, kScattered>(m, ends);
    case 3: return MultiplyTile<Product, 3, kPanels, kScattered>(m, ends);
    case 4: return MultiplyTile<Product, 4, kPanels, kScattered>(m, ends);
    case 5: return MultiplyTile<Product, 5, kPanels, kScattered>(m, ends);
    default: return MultiplyTile<Product, 6, kPanels, kScattered>(m, ends);
  }
}
template <typename Product, int kPanels>
void MultiplyRows(const Multiply& m) {
  MultiplyRows<Product, kPanels>(m, KeepSums{m});
}

template <typename Product, bool kScattered = false>
void MultiplyPanels(const Multiply& m) {
  const KeepSums ends = {m};
  switch (m.panels) {
    case 1: return MultiplyRows<Product, 1, kScattered>(m, ends);
    case 2: return MultiplyRows<Product, 2, kScattered>(m, ends);
    case 3: return MultiplyRows<Product, 3, kScattered>(m, ends);
    default: return MultiplyRows<Product, 4, kScattered>(m, ends);
  }
}

}  // namespace
}  // namespace fuselage::kernels

#endif  // FUSELAGE_KERNELS_CORE_MULTIPLY_MULTIPLY_AVX512_H_
