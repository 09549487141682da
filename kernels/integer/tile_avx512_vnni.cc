#include <cstring>

#include "kernels/core/avx512.h"
#include "kernels/integer/tile.h"

namespace fuselage::integer {
namespace {

struct Pairs {
  static __m512i Add(__m512i sum, __m512i a, __m512i b) { return _mm512_dpwssd_epi32(sum, a, b); }
};
struct Bytes {
  static __m512i Add(__m512i sum, __m512i a, __m512i b) { return _mm512_dpbusd_epi32(sum, a, b); }
};

inline __m512i Step(const uint8_t* a) {
  int32_t step;
  std::memcpy(&step, a, sizeof(step));
  return _mm512_set1_epi32(step);
}

// Unrolled, for the sums to stay in registers; not inlined, for GCC 12 would keep them in memory besides.
template <typename Product, int kRows, int kVectors>
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
  for (int64_t step = 0; step < t.steps; ++step, a += kStepBytes, b += kPanel * kStepBytes) {
    __m512i columns[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) columns[v] = _mm512_loadu_si512(b + 64 * v);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m512i x = Step(a + r * a_stride);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sums[r][v] = Product::Add(sums[r][v], x, columns[v]);
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

template <typename Product, int kVectors>
inline void AllRows(const Tile& t) {
  int64_t row = 0;
  for (; row + 8 <= t.rows; row += 8) Rows<Product, 8, kVectors>(t, row);
  for (; row + 4 <= t.rows; row += 4) Rows<Product, 4, kVectors>(t, row);
  for (; row < t.rows; ++row) Rows<Product, 1, kVectors>(t, row);
}

template <typename Product>
inline void RunTile(const Tile& t) {
  t.columns <= 16 ? AllRows<Product, 1>(t) : AllRows<Product, kPanel / 16>(t);
}

}  // namespace

void FUSELAGE_AVX512_VNNI::Run(const Tile& t) { RunTile<Pairs>(t); }
void FUSELAGE_AVX512_VNNI::RunBytes(const Tile& t) { RunTile<Bytes>(t); }

}  // namespace fuselage::integer
