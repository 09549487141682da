// The products of variants with 8 lanes of int32. Everything is local to the including source.
//
// Product: its Input, the type of a packed x; kGroup, how many of them a dword holds; Weights, those of 8 channels and
// kGroup features; Add, the sums of their products.
#ifndef FUSELAGE_KERNELS_INT8_LINEAR_LINEAR_TILE_AVX2_H_
#define FUSELAGE_KERNELS_INT8_LINEAR_LINEAR_TILE_AVX2_H_

#include <cstring>

#include "kernels/core/activate_avx2.h"
#include "kernels/core/avx2.h"
#include "kernels/int8/linear/linear.h"

namespace fuselage::int8::linear {
namespace {

constexpr int64_t kBlock = 8;

inline __m256i BroadcastDword(const void* x) {
  int32_t dword;
  std::memcpy(&dword, x, sizeof(dword));
  return _mm256_set1_epi32(dword);
}

// Of kFull bytes or, at the last channels, fewer: no call where all are copied.
template <int kFull>
inline void CopyFull(const void* from, int64_t bytes, void* to) {
  if (bytes == kFull) {
    std::memcpy(to, from, kFull);
  } else {
    std::memcpy(to, from, bytes);
  }
}

// One row's 8 * kVectors channels from `n`, of which `count` are stored.
template <int kVectors>
inline void Store(const Params& p, const kernels::avx2::OutputCodes& codes, const __m256i* sums, int64_t row, int64_t n,
                  int64_t count, void* y) {
  __m256 v[4] = {};
  const __m256 row_multiplier = _mm256_set1_ps(p.row_multiplier == nullptr ? 1.0f : p.row_multiplier[row]);
  const __m256i row_addend = _mm256_set1_epi32(p.row_addend == nullptr ? 0 : p.row_addend[row]);
#pragma GCC unroll 4
  for (int j = 0; j < kVectors; ++j) {
    const __m256i addend = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p.addend + n + kBlock * j));
    const __m256 sum = _mm256_cvtepi32_ps(_mm256_add_epi32(sums[j], _mm256_add_epi32(addend, row_addend)));
    const __m256 multiplier = _mm256_loadu_ps(p.multiplier + n + kBlock * j);
    if (p.float_output) {
      v[j] = _mm256_fmadd_ps(sum, _mm256_mul_ps(multiplier, row_multiplier),
                             _mm256_loadu_ps(p.float_bias + n + kBlock * j));
      if (p.relu) v[j] = _mm256_max_ps(v[j], _mm256_setzero_ps());
    } else {
      v[j] = _mm256_mul_ps(sum, multiplier);
    }
  }
  if (p.function != nullptr) kernels::avx2::ActivateVectors<4>(*p.function, p.function_multiplier, v);
  if (p.float_output) {
    CopyFull<kBlock * kVectors * sizeof(float)>(v, count * sizeof(float),
                                                static_cast<float*>(y) + row * p.channels + n);
  } else {
    const __m256i q = kernels::avx2::ToCodes(v[0], v[1], v[2], v[3], codes);
    CopyFull<kBlock * kVectors>(&q, count, static_cast<uint8_t*>(y) + row * p.channels + n);
  }
}

// Not inlined: the caller's constants would take its registers.
template <typename Product, int kRows, int kVectors>
__attribute__((noinline)) void Tile(const Params& p, const kernels::avx2::OutputCodes& codes,
                                    const typename Product::Input* x, int64_t row, int64_t n, int64_t count, void* y) {
  __m256i sums[kRows][kVectors];
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) sums[i][j] = _mm256_setzero_si256();
  }
  const int8_t* weight = p.weight + n * p.depth;
  for (int64_t k = 0; k < p.depth; k += Product::kGroup) {
    __m256i w[kVectors];
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) w[j] = Product::Weights(weight + kBlock * (j * p.depth + k));
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) {
      const __m256i group = BroadcastDword(x + (row + i) * p.depth + k);
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j) sums[i][j] = Product::Add(sums[i][j], group, w[j]);
    }
  }
  for (int i = 0; i < kRows; ++i) Store<kVectors>(p, codes, sums[i], row + i, n, count, y);
}

// Rows of one strip of channels: 4 x 16 in registers, and single rows 32 wide, which stream the weights.
template <typename Product, int kVectors>
inline void Strip(const Params& p, const kernels::avx2::OutputCodes& codes, const typename Product::Input* x,
                  const Range& range, int64_t n, int64_t count, void* y) {
  int64_t row = range.row_begin;
  if (kVectors <= 2) {
    for (; row + 4 <= range.row_end; row += 4) Tile<Product, 4, kVectors>(p, codes, x, row, n, count, y);
  }
  for (; row < range.row_end; ++row) Tile<Product, 1, kVectors>(p, codes, x, row, n, count, y);
}

// A variant's Run.
template <typename Product>
void RunTiles(const Params& p, const void* x, void* y, const Range& range) {
  const typename Product::Input* packed = static_cast<const typename Product::Input*>(x);
  const kernels::avx2::OutputCodes codes = kernels::avx2::MakeOutputCodes(p.zero_point, p.lo, p.hi, p.flip);
  const int64_t end = range.channel_end;
  int64_t n = range.channel_begin;
  if (range.row_end - range.row_begin < 4) {
    for (; n + 32 <= end; n += 32) Strip<Product, 4>(p, codes, packed, range, n, 32, y);
  }
  for (; n + 16 <= end; n += 16) Strip<Product, 2>(p, codes, packed, range, n, 16, y);
  for (; n < end; n += 8) Strip<Product, 1>(p, codes, packed, range, n, end - n < 8 ? end - n : 8, y);
}

}  // namespace
}  // namespace fuselage::int8::linear

#endif  // FUSELAGE_KERNELS_INT8_LINEAR_LINEAR_TILE_AVX2_H_
