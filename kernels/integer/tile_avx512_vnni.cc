#include <cstring>

#include "kernels/core/avx512.h"
#include "kernels/integer/tile.h"

namespace fuselage::integer {
namespace {

constexpr int kVectors = kPanel / 16;

inline __m512i Pair(const int16_t* a) {
  int32_t pair;
  std::memcpy(&pair, a, sizeof(pair));
  return _mm512_set1_epi32(pair);
}

template <int kRows>
inline void Rows(const Tile& t, int64_t row) {
  const int16_t* a = t.a + row * 2 * t.pairs;
  __m512i sums[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) sums[r][v] = _mm512_setzero_si512();
  }
  for (int64_t pair = 0; pair < t.pairs; ++pair) {
    const int16_t* b = t.b + pair * 2 * kPanel;
    for (int v = 0; v < kVectors; ++v) {
      const __m512i column = _mm512_loadu_si512(b + 32 * v);
      for (int r = 0; r < kRows; ++r) {
        sums[r][v] = _mm512_dpwssd_epi32(sums[r][v], Pair(a + (r * t.pairs + pair) * 2), column);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    int32_t* c = t.c + (row + r) * t.c_stride;
    int32_t values[kPanel];
    int32_t* to = t.columns == kPanel ? c : values;
    for (int v = 0; v < kVectors; ++v) _mm512_storeu_si512(to + 16 * v, sums[r][v]);
    if (to == values) std::memcpy(c, values, t.columns * sizeof(int32_t));
  }
}

}  // namespace

void FUSELAGE_AVX512_VNNI::Run(const Tile& t) {
  int64_t row = 0;
  for (; row + 8 <= t.rows; row += 8) Rows<8>(t, row);
  for (; row + 4 <= t.rows; row += 4) Rows<4>(t, row);
  for (; row < t.rows; ++row) Rows<1>(t, row);
}

}  // namespace fuselage::integer
