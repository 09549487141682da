#include <cstring>

#include "kernels/core/avx512.h"
#include "kernels/integer/tile.h"

namespace fuselage::integer {
namespace {

inline __m512i Step(const uint8_t* a) {
  int32_t step;
  std::memcpy(&step, a, sizeof(step));
  return _mm512_set1_epi32(step);
}

// Unrolled, for the sums to stay in registers; not inlined, for GCC 12 would keep them in memory besides.
template <int kRows, int kVectors>
__attribute__((noinline)) void Rows(const Tile& t, int64_t row) {
  const int64_t a_stride = t.steps * kStepBytes;
  const uint8_t* a = static_cast<const uint8_t*>(t.a) + row * a_stride;
  const uint8_t* b = static_cast<const uint8_t*>(t.b);
  __m512i sums[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sums[r][v] = _mm512_loadu_si512(t.addend + 16 * v);
  }
  if (t.row_factors != nullptr) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m512i factor = _mm512_set1_epi32(t.row_factors[row + r]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        const __m512i factors = _mm512_loadu_si512(t.column_factors + 16 * v);
        sums[r][v] = _mm512_add_epi32(sums[r][v], _mm512_mullo_epi32(factor, factors));
      }
    }
  }
  for (int64_t step = 0; step < t.steps; ++step, a += kStepBytes, b += kPanel * kStepBytes) {
    __m512i columns[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) columns[v] = _mm512_loadu_si512(b + 64 * v);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m512i x = Step(a + r * a_stride);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sums[r][v] = _mm512_dpbusd_epi32(sums[r][v], x, columns[v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) kernels::FUSELAGE_AVX512_VNNI::EndLiveRange(sums[r][v]);
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    int32_t* c = t.c + (row + r) * t.c_stride;
    int32_t values[kPanel];
    int32_t* to = t.columns == 16 * kVectors ? c : values;
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) _mm512_storeu_si512(to + 16 * v, sums[r][v]);
    if (to == values) std::memcpy(c, values, t.columns * sizeof(int32_t));
  }
}

template <int kVectors>
inline void AllRows(const Tile& t) {
  int64_t row = 0;
  for (; row + 8 <= t.rows; row += 8) Rows<8, kVectors>(t, row);
  for (; row + 4 <= t.rows; row += 4) Rows<4, kVectors>(t, row);
  for (; row < t.rows; ++row) Rows<1, kVectors>(t, row);
}

}  // namespace

void FUSELAGE_AVX512_VNNI::Run(const Tile& t) { t.columns <= 16 ? AllRows<1>(t) : AllRows<kPanel / 16>(t); }

}  // namespace fuselage::integer
