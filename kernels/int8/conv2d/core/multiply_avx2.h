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
  static constexpr bool kFetchesNext = false;
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

// Each of so many tiles fetches a part of the next weights, so much a step, so that lines do not come faster than a
// third cache delivers them.
constexpr int kFetchingTiles = 4, kFetchBytes = kPanelBytes / kFetchingTiles;

// kRows x 16 sums in 2*kRows <= 12 registers, two of weights, one broadcast dword and one product: all 16. A step of
// six rows is 12 products and 8 loads: six cycles where two multiplications start per cycle. What else a step takes
// counts where threads share a core: twice unrolled it is less than two instructions. kHalves: of a panel.
//
// The rows of so many tiles are those at `a` and `row_offsets`, their sums at c. They are arguments: an m that is
// written and then copied by vectors waits for all that came before it. Of few steps a tile takes no longer than a
// call.
template <typename Product, int kRows, int kHalves>
__attribute__((noinline)) void MultiplyRows(const Multiply& m, const char* a, const int64_t* row_offsets,
                                            const char* next, int32_t* c, int tiles) {
  for (int tile = 0; tile < tiles; ++tile) {
    __m256i sum[kRows][kHalves];
    if (m.accumulate) {
#pragma GCC unroll 6
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
        for (int half = 0; half < kHalves; ++half) sum[r][half] = LoadVector(c + r * m.c_stride + 8 * half);
      }
    } else {
#pragma GCC unroll 6
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
        for (int half = 0; half < kHalves; ++half) sum[r][half] = _mm256_setzero_si256();
      }
    }
    const char* rows[kRows];
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      rows[r] = a + (row_offsets != nullptr ? row_offsets[r] : r * m.a_stride);
    }
    const char* b = static_cast<const char*>(m.b);
    int64_t run = m.first_run;
    for (int64_t d = 0; d < m.depth; d += run, run = m.run) {
      if (run == 0 || run > m.depth - d) run = m.depth - d;
      int64_t offset = m.offsets[d];
#pragma GCC unroll 2
      for (const char* const end = b + run * kPanelBytes; b < end; b += kPanelBytes, offset += kDwordBytes) {
        if (Product::kFetchesNext && next != nullptr) {
          __builtin_prefetch(next, /*rw=*/0, /*locality=*/2);
          next += kFetchBytes;
        }
        const __m256i weights[2] = {LoadVector(b), LoadVector(b + 32)};
#pragma GCC unroll 6
        for (int r = 0; r < kRows; ++r) {
          const __m256i x = _mm256_set1_epi32(LoadDword(rows[r] + offset));
#pragma GCC unroll 2
          for (int half = 0; half < kHalves; ++half) sum[r][half] = Product::Add(sum[r][half], x, weights[half]);
        }
      }
    }
    if (Product::kFetchesNext && next >= static_cast<const char*>(m.next) + m.depth * kPanelBytes) next = nullptr;
    const int64_t c_stride = m.c_stride;  // For all that GCC knows, a store may change m.
    a += row_offsets != nullptr ? 0 : kRows * m.a_stride;
    if (row_offsets != nullptr) row_offsets += kRows;
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r, c += c_stride) {
#pragma GCC unroll 2
      for (int half = 0; half < kHalves; ++half) StoreVector(c + 8 * half, sum[r][half]);
    }
  }
}

using Rows = void(const Multiply& m, const char* a, const int64_t* row_offsets, const char* next, int32_t* c,
                  int tiles);

template <typename Product>
constexpr Rows* kRowsOfPanel[] = {MultiplyRows<Product, 1, 2>, MultiplyRows<Product, 2, 2>,
                                  MultiplyRows<Product, 3, 2>, MultiplyRows<Product, 4, 2>,
                                  MultiplyRows<Product, 5, 2>, MultiplyRows<Product, 6, 2>};

// Half a panel of more than kFewRows rows. Fewer are rare: they take all of it.
constexpr int kFewRows = 3;
template <typename Product>
constexpr Rows* kRowsOfHalf[] = {MultiplyRows<Product, 4, 1>, MultiplyRows<Product, 5, 1>, MultiplyRows<Product, 6, 1>};

// Any number of rows, in as few tiles as there can be.
template <typename Product>
void MultiplyTiles(const Multiply& m) {
  const char *a = static_cast<const char*>(m.a), *next = static_cast<const char*>(m.next);
  const char* const next_end = next + m.depth * kPanelBytes;
  const int64_t* row_offsets = m.row_offsets;
  int32_t* c = m.c;
  for (int left = m.rows; left > 0;) {
    const int rows = left <= kMaxRows ? left : left < 2 * kMaxRows ? left / 2 : kMaxRows;
    const int tiles = left < 2 * kMaxRows ? 1 : left / kMaxRows - (left % kMaxRows != 0 ? 1 : 0);
    (m.half && rows > kFewRows ? kRowsOfHalf<Product>[rows - kFewRows - 1] : kRowsOfPanel<Product>[rows - 1])(
        m, a, row_offsets, next, c, tiles);
    const int done = tiles * rows;
    if (row_offsets == nullptr) a += done * m.a_stride;
    if (row_offsets != nullptr) row_offsets += done;
    if (next != nullptr && (next += tiles * m.depth * kFetchBytes) >= next_end) next = nullptr;
    c += done * m.c_stride;
    left -= done;
  }
}

}  // namespace
}  // namespace fuselage::int8::conv2d

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CORE_MULTIPLY_AVX2_H_
