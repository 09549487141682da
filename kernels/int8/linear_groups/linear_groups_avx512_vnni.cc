#include <cstring>

#include "kernels/core/avx512.h"
#include "kernels/int8/linear_groups/linear_groups.h"

namespace fuselage::int8::linear_groups {
namespace {

constexpr int64_t kBlock = 16;
constexpr int64_t kVector = 64;  // Bytes.
// Of what one row reads from memory.
constexpr int64_t kPrefetchAhead = 16384, kLine = 64;

inline __m512i Broadcast(const int8_t* x) {
  int32_t dword;
  std::memcpy(&dword, x, sizeof(dword));
  return _mm512_set1_epi32(dword);
}

// The scales of a group of the channels of a block, from the `first` on. MXFP4's are E8M0, whose half, 2^(scale - 128),
// is a normal float.
template <Format kFormat>
inline __m512 Factors(const Params& p, int64_t first) {
  if constexpr (kFormat != Format::kMxfp4) return _mm512_loadu_ps(static_cast<const float*>(p.scale) + first);
  const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(static_cast<const uint8_t*>(p.scale) + first));
  const __m512i exponents = _mm512_sub_epi32(_mm512_cvtepu8_epi32(codes), _mm512_set1_epi32(1));
  return _mm512_castsi512_ps(_mm512_slli_epi32(exponents, 23));
}

// Of the same channels: what unsigned weights of 0 stand for.
template <Format kFormat>
inline __m512i Least(const Params& p, int64_t first) {
  if (kFormat != Format::kInt4 || p.least == nullptr) return _mm512_set1_epi32(LeastOf(kFormat));
  return _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p.least + first)));
}

// Weights of eight features: of the first four and of those behind them.
struct Weights {
  __m512i low, high;
};

// As they lie in memory.
template <Format kFormat>
struct Packed {
  static constexpr int64_t kBytes = kFormat == Format::kInt8 ? 2 * kVector : kVector;
  // The next lines come from memory while these are multiplied.
  static inline void Prefetch(const uint8_t* from) {
    for (int64_t line = 0; line < kBytes; line += kLine) __builtin_prefetch(from + kPrefetchAhead + line);
  }

  static inline Weights Load(const uint8_t* from) {
    if constexpr (kFormat == Format::kInt8) return {_mm512_loadu_si512(from), _mm512_loadu_si512(from + kVector)};
    const __m512i low_bits = _mm512_set1_epi8(15), codes = _mm512_loadu_si512(from);
    const Weights weights = {_mm512_and_si512(codes, low_bits),
                             _mm512_and_si512(_mm512_srli_epi16(codes, 4), low_bits)};
    if constexpr (kFormat == Format::kInt4) return weights;
    const __m512i table = _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(kMxfp4Weights)));
    return {_mm512_shuffle_epi8(table, weights.low), _mm512_shuffle_epi8(table, weights.high)};
  }
};

// As several rows take them: as bytes.
struct Unpacked {
  static constexpr int64_t kBytes = 2 * kVector;
  static inline void Prefetch(const uint8_t*) {}
  static inline Weights Load(const uint8_t* from) { return Packed<Format::kInt8>::Load(from); }
};

// Adds the groups from `group_begin` to `group_end` of rows times the block of channels from `n` to `sums`. `weight`:
// those groups', as From takes them. Not inlined: the caller's constants would take its registers.
template <int kRows, Format kFormat, typename From>
__attribute__((noinline)) void AddGroups(const Params& p, const uint8_t* weight, int64_t row, int64_t n,
                                         int64_t group_begin, int64_t group_end, float (*sums)[kBlock]) {
  const int8_t* x = p.x + row * p.depth + group_begin * p.units * kUnit;
  __m512 totals[kRows];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) totals[i] = _mm512_loadu_ps(sums[i]);
  for (int64_t g = group_begin; g < group_end; ++g) {
    const int64_t first = (n / kBlock * p.groups + g) * kBlock;
    const __m512i least = Least<kFormat>(p, first);
    __m512i group[kRows];
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      group[i] =
          _mm512_dpwssd_epi32(_mm512_setzero_si512(), least, _mm512_set1_epi32(p.x_sums[(row + i) * p.groups + g]));
    }
    for (int64_t eight = 0; eight < p.units * (kUnit / 8); ++eight, weight += From::kBytes, x += 8) {
      From::Prefetch(weight);
      const Weights weights = From::Load(weight);
#pragma GCC unroll 8
      for (int i = 0; i < kRows; ++i) {
        const int8_t* features = x + i * p.depth;
        group[i] = _mm512_dpbusd_epi32(group[i], weights.low, Broadcast(features));
        group[i] = _mm512_dpbusd_epi32(group[i], weights.high, Broadcast(features + 4));
      }
    }
    const __m512 factor = Factors<kFormat>(p, first);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) totals[i] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(group[i]), factor, totals[i]);
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) _mm512_storeu_ps(sums[i], totals[i]);
}

// The groups of AddGroups for all rows of a range.
template <Format kFormat, typename From>
void AddRows(const Params& p, const uint8_t* weight, const Range& range, int64_t n, int64_t group_begin,
             int64_t group_end, float (*sums)[kBlock]) {
  int64_t row = range.row_begin;
  for (; row + 8 <= range.row_end; row += 8, sums += 8) {
    AddGroups<8, kFormat, From>(p, weight, row, n, group_begin, group_end, sums);
  }
  if (row + 4 <= range.row_end) {
    AddGroups<4, kFormat, From>(p, weight, row, n, group_begin, group_end, sums);
    row += 4;
    sums += 4;
  }
  for (; row < range.row_end; ++row, ++sums) {
    AddGroups<1, kFormat, From>(p, weight, row, n, group_begin, group_end, sums);
  }
}

// Of a block's channels `count` are stored.
template <Format kFormat>
void RunBlock(const Params& p, const Range& range, int64_t n, int64_t count) {
  const int64_t rows = range.row_end - range.row_begin, eights = p.units * (kUnit / 8);
  const uint8_t* weight = p.weight + n * p.groups * p.units * p.unit_bytes;
  float sums[kTaskRows][kBlock];
  for (int64_t i = 0; i < rows; ++i) _mm512_storeu_ps(sums[i], _mm512_setzero_ps());
  if (rows == 1) {
    AddGroups<1, kFormat, Packed<kFormat>>(p, weight, range.row_begin, n, 0, p.groups, sums);
  } else if (kFormat == Format::kInt8) {
    AddRows<kFormat, Unpacked>(p, weight, range, n, 0, p.groups, sums);
  } else {
    uint8_t unpacked[kChunk / 8 * Unpacked::kBytes];
    const int64_t groups = kChunk / kUnit / p.units;
    for (int64_t begin = 0; begin < p.groups; begin += groups) {
      const int64_t end = p.groups - begin < groups ? p.groups : begin + groups;
      uint8_t* to = unpacked;
      for (int64_t eight = (end - begin) * eights; eight > 0; --eight) {
        const Weights weights = Packed<kFormat>::Load(weight);
        _mm512_storeu_si512(to, weights.low);
        _mm512_storeu_si512(to + kVector, weights.high);
        weight += Packed<kFormat>::kBytes;
        to += Unpacked::kBytes;
      }
      AddRows<kFormat, Unpacked>(p, unpacked, range, n, begin, end, sums);
    }
  }
  const __m512 bias = _mm512_loadu_ps(p.bias + n);
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t row = range.row_begin + i;
    const __m512 y = _mm512_fmadd_ps(_mm512_loadu_ps(sums[i]), _mm512_set1_ps(p.x_scale[row]), bias);
    std::memcpy(p.y + row * p.channels + n, &y, count * sizeof(float));
  }
}

template <Format kFormat>
void RunFormat(const Params& p, const Range& range) {
  for (int64_t n = range.channel_begin; n < range.channel_end; n += kBlock) {
    RunBlock<kFormat>(p, range, n, range.channel_end - n < kBlock ? range.channel_end - n : kBlock);
  }
}

}  // namespace

void FUSELAGE_AVX512_VNNI::Run(const Params& p, const Range& range) {
  switch (p.format) {
    case Format::kMxfp4: return RunFormat<Format::kMxfp4>(p, range);
    case Format::kInt4: return RunFormat<Format::kInt4>(p, range);
    case Format::kInt8: return RunFormat<Format::kInt8>(p, range);
  }
}

}  // namespace fuselage::int8::linear_groups
