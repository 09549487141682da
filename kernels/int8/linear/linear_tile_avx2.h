// The products of variants with 8 lanes of int32. Everything is local to the including source.
//
// Product: its Input, the type of a packed x; kGroup, how many of them a dword holds; Weights, those of 8 channels and
// kGroup features; Add, the sums of their products.
#ifndef FUSELAGE_KERNELS_INT8_LINEAR_LINEAR_TILE_AVX2_H_
#define FUSELAGE_KERNELS_INT8_LINEAR_LINEAR_TILE_AVX2_H_

#include <cstring>

#include "kernels/core/activate.h"
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

// Copies kFull bytes or, at the last channels, fewer. kFull bytes are moves, and no call.
template <int kFull>
inline void CopyFull(const void* from, int64_t bytes, void* to) {
  if (bytes == kFull) {
    std::memcpy(to, from, kFull);
  } else {
    std::memcpy(to, from, bytes);
  }
}

constexpr int64_t kMaxRows = 6;  // Of a tile.

// Results of a tile's sums, [rows][8 * kVectors]. Values beyond them are anything.
template <int kVectors>
__attribute__((noinline)) void Store(const Params& p, const kernels::avx2::OutputCodes& codes, const Range& tile,
                                     const int32_t* sums, void* y) {
  constexpr int64_t kChannels = kBlock * kVectors, kTogether = 4 * kBlock;
  const int64_t n = tile.channel_begin, count = tile.channel_end - n, rows = tile.row_end - tile.row_begin;
  const int64_t size = rows * kChannels;
  alignas(32) float values[(kMaxRows * kChannels + kTogether - 1) / kTogether * kTogether];
  const __m256 keep = _mm256_castsi256_ps(_mm256_set1_epi32(p.relu ? 0 : -1));
  for (int64_t row = 0; row < rows; ++row) {
    const __m256i row_addend = _mm256_set1_epi32(p.row_addend == nullptr ? 0 : p.row_addend[tile.row_begin + row]);
    const __m256 row_multiplier =
        _mm256_set1_ps(p.row_multiplier == nullptr ? 1.0f : p.row_multiplier[tile.row_begin + row]);
#pragma GCC unroll 4
    for (int64_t j = 0; j < kChannels; j += kBlock) {
      const __m256i addend = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p.addend + n + j));
      const __m256i sum = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(sums + row * kChannels + j));
      const __m256 multiplier = _mm256_loadu_ps(p.multiplier + n + j);
      __m256 v = _mm256_cvtepi32_ps(_mm256_add_epi32(sum, _mm256_add_epi32(addend, row_addend)));
      if (p.float_output) {
        v = _mm256_fmadd_ps(v, _mm256_mul_ps(multiplier, row_multiplier), _mm256_loadu_ps(p.float_bias + n + j));
        const __m256 positive = _mm256_cmp_ps(v, _mm256_setzero_ps(), _CMP_GT_OQ);
        v = _mm256_and_ps(v, _mm256_or_ps(positive, keep));
      } else {
        v = _mm256_mul_ps(v, multiplier);
      }
      _mm256_store_ps(values + row * kChannels + j, v);
    }
  }
  if (p.function != nullptr) {
    constexpr int64_t kActivated = kernels::kActivatedTogether;
    kernels::avx2::Activate(*p.function, values, (size + kActivated - 1) / kActivated * kActivated);
    const __m256 multiplier = _mm256_set1_ps(p.function_multiplier);
    for (int64_t i = 0; i < size; i += kBlock) {
      _mm256_store_ps(values + i, _mm256_mul_ps(_mm256_load_ps(values + i), multiplier));
    }
  }
  if (p.float_output) {
    float* to = static_cast<float*>(y) + tile.row_begin * p.channels + n;
    for (int64_t i = 0; i < size; i += kChannels, to += p.channels) {
      CopyFull<kChannels * sizeof(float)>(values + i, count * sizeof(float), to);
    }
    return;
  }
  uint8_t bytes[sizeof(values) / sizeof(float)];
  for (int64_t i = 0; i < size; i += kTogether) {
    const float* v = values + i;
    const __m256i q = kernels::avx2::ToCodes(_mm256_load_ps(v), _mm256_load_ps(v + kBlock),
                                             _mm256_load_ps(v + 2 * kBlock), _mm256_load_ps(v + 3 * kBlock), codes);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(bytes + i), q);
  }
  uint8_t* to = static_cast<uint8_t*>(y) + tile.row_begin * p.channels + n;
  for (int64_t i = 0; i < size; i += kChannels, to += p.channels) CopyFull<kChannels>(bytes + i, count, to);
}

// sums[kRows][8 * kVectors], in registers until they are whole. Six rows of two vectors take twelve of them, two are
// weights, one a group of x: twelve products for eight loads.
template <typename Product, int kVectors, int kRows>
__attribute__((noinline)) void Multiply(const Params& p, const typename Product::Input* x, const int8_t* weight,
                                        int32_t* sums) {
  const int64_t depth = p.depth, pitch = p.pitch;
  __m256i sum[kRows][kVectors];
#pragma GCC unroll 6
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) sum[i][j] = _mm256_setzero_si256();
  }
  const typename Product::Input* x3 = x + 3 * pitch;
  // Twice, so that no sum is copied from register to register at the loop's end.
#pragma GCC unroll 2
  for (int64_t k = 0; k < depth; k += Product::kGroup) {
    __m256i w[kVectors];
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) w[j] = Product::Weights(weight + kBlock * (j * pitch + k));
#pragma GCC unroll 6
    for (int i = 0; i < kRows; ++i) {
      const __m256i group = BroadcastDword((i < 3 ? x + i * pitch : x3 + (i - 3) * pitch) + k);
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j) sum[i][j] = Product::Add(sum[i][j], group, w[j]);
    }
  }
#pragma GCC unroll 6
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums + (i * kVectors + j) * kBlock), sum[i][j]);
    }
  }
}

template <typename Product, int kVectors>
inline void MultiplyRows(const Params& p, int64_t rows, const typename Product::Input* x, const int8_t* weight,
                         int32_t* sums) {
  if constexpr (kVectors > 2) return Multiply<Product, kVectors, 1>(p, x, weight, sums);
  switch (rows) {
    case 1: return Multiply<Product, kVectors, 1>(p, x, weight, sums);
    case 2: return Multiply<Product, kVectors, 2>(p, x, weight, sums);
    case 3: return Multiply<Product, kVectors, 3>(p, x, weight, sums);
    case 4: return Multiply<Product, kVectors, 4>(p, x, weight, sums);
    case 5: return Multiply<Product, kVectors, 5>(p, x, weight, sums);
    default: return Multiply<Product, kVectors, 6>(p, x, weight, sums);
  }
}

// Channels of 8 * kVectors, whose weights stay in the first-level cache, in tiles of about as many rows each.
template <typename Product, int kVectors>
inline void Strip(const Params& p, const kernels::avx2::OutputCodes& codes, const void* x, const Range& range,
                  void* y) {
  const int64_t rows = range.row_end - range.row_begin, parts = (rows + kMaxRows - 1) / kMaxRows;
  Range tile = range;
  for (int64_t part = 0; part < parts; ++part, tile.row_begin = tile.row_end) {
    tile.row_end = range.row_begin + rows * (part + 1) / parts;
    alignas(32) int32_t sums[kMaxRows * kVectors * kBlock];
    MultiplyRows<Product, kVectors>(p, tile.row_end - tile.row_begin,
                                    static_cast<const typename Product::Input*>(x) + tile.row_begin * p.pitch,
                                    p.weight + tile.channel_begin * p.pitch, sums);
    Store<kVectors>(p, codes, tile, sums, y);
  }
}

// A variant's Run. One row streams the weights, four vectors of channels at a time.
template <typename Product>
void RunTiles(const Params& p, const void* x, void* y, const Range& range) {
  const kernels::avx2::OutputCodes codes = kernels::avx2::MakeOutputCodes(p.zero_point, p.lo, p.hi, p.flip);
  const bool one_row = range.row_end - range.row_begin == 1;
  Range strip = range;
  for (; strip.channel_begin < range.channel_end; strip.channel_begin = strip.channel_end) {
    const int64_t left = range.channel_end - strip.channel_begin;
    if (one_row && left >= 4 * kBlock) {
      strip.channel_end = strip.channel_begin + 4 * kBlock;
      Strip<Product, 4>(p, codes, x, strip, y);
    } else if (left > kBlock) {
      strip.channel_end = strip.channel_begin + (left < 2 * kBlock ? left : 2 * kBlock);
      Strip<Product, 2>(p, codes, x, strip, y);
    } else {
      strip.channel_end = range.channel_end;
      Strip<Product, 1>(p, codes, x, strip, y);
    }
  }
}

}  // namespace
}  // namespace fuselage::int8::linear

#endif  // FUSELAGE_KERNELS_INT8_LINEAR_LINEAR_TILE_AVX2_H_
