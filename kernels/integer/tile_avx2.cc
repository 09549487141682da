#include <immintrin.h>

#include <cstring>

#include "kernels/integer/tile.h"

namespace fuselage::integer {
namespace {

constexpr int kVectors = kPanel / 8;

inline __m256i Load(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }

inline __m256i Pair(const int16_t* a) {
  int32_t pair;
  std::memcpy(&pair, a, sizeof(pair));
  return _mm256_set1_epi32(pair);
}

// The sums of two rows take eight registers of 16.
template <int kRows>
inline void Rows(const Tile& t, int64_t row) {
  const int16_t* a = static_cast<const int16_t*>(t.a) + row * 2 * t.steps;
  const int16_t* b = static_cast<const int16_t*>(t.b);
  __m256i sums[kRows][kVectors];
#pragma GCC unroll 2
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums[r][v] = Load(t.addend + 8 * v);
  }
  for (int64_t step = 0; step < t.steps; ++step, b += 2 * kPanel) {
    __m256i pairs[kRows];
#pragma GCC unroll 2
    for (int r = 0; r < kRows; ++r) pairs[r] = Pair(a + (r * t.steps + step) * 2);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const __m256i column = Load(b + 16 * v);
#pragma GCC unroll 2
      for (int r = 0; r < kRows; ++r) {
        sums[r][v] = _mm256_add_epi32(sums[r][v], _mm256_madd_epi16(pairs[r], column));
      }
    }
  }
#pragma GCC unroll 2
  for (int r = 0; r < kRows; ++r) {
    int32_t* c = t.c + (row + r) * t.c_stride;
    int32_t values[kPanel];
    int32_t* to = t.columns == kPanel ? c : values;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 8 * v), sums[r][v]);
    if (to == values) std::memcpy(c, values, t.columns * sizeof(int32_t));
  }
}

}  // namespace

void avx2::Run(const Tile& t) {
  int64_t row = 0;
  for (; row + 2 <= t.rows; row += 2) Rows<2>(t, row);
  if (row < t.rows) Rows<1>(t, row);
}

}  // namespace fuselage::integer
