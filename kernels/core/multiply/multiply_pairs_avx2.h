// The matrix product of a panel whose steps are grouped (pairs.h), with 8 lanes of int32. Everything is local to the
// including source, which is compiled with -mavx2.
#ifndef FUSELAGE_KERNELS_CORE_MULTIPLY_MULTIPLY_PAIRS_AVX2_H_
#define FUSELAGE_KERNELS_CORE_MULTIPLY_MULTIPLY_PAIRS_AVX2_H_

#include <immintrin.h>

#include "kernels/core/multiply/pairs.h"

namespace fuselage::kernels {
namespace {

constexpr int kPairTileRows = 4;  // Of a tile: their sums take eight registers of 16.

// The pairs of one step of a row, in both halves of a panel, to those of the steps before it. Little is multiplied for
// what is loaded: 72 instructions for four steps of four rows take 39 vectors from memory, weights mostly as operands.
// The compiler, left to itself, multiplies ahead, and spills: not where kHalves is 1.
template <bool kFirst, int kHalves>
inline __attribute__((always_inline)) void AddPairs(const char* a, const __m256i& low, const __m256i& high,
                                                    __m256i (&pairs)[kHalves]) {
  using Dword [[gnu::may_alias, gnu::aligned(1)]] = int32_t;
  const Dword& dword = *reinterpret_cast<const Dword*>(a);
  __m256i x, product;
  if constexpr (kHalves == 1) {
    product = _mm256_maddubs_epi16(_mm256_set1_epi32(dword), low);
    pairs[0] = kFirst ? product : _mm256_add_epi16(pairs[0], product);
  } else if constexpr (kFirst) {
    asm("vpbroadcastd %[dword], %[x]\n\t"
        "vpmaddubsw %[low], %[x], %[pairs0]\n\t"
        "vpmaddubsw %[high], %[x], %[pairs1]"
        : [x] "=&x"(x), [pairs0] "=&x"(pairs[0]), [pairs1] "=x"(pairs[1])
        : [dword] "m"(dword), [low] "xm"(low), [high] "xm"(high));
  } else {
    asm("vpbroadcastd %[dword], %[x]\n\t"
        "vpmaddubsw %[low], %[x], %[product]\n\t"
        "vpmaddubsw %[high], %[x], %[x]\n\t"
        "vpaddw %[product], %[pairs0], %[pairs0]\n\t"
        "vpaddw %[x], %[pairs1], %[pairs1]"
        : [x] "=&x"(x), [product] "=&x"(product), [pairs0] "+x"(pairs[0]), [pairs1] "+x"(pairs[1])
        : [dword] "m"(dword), [low] "xm"(low), [high] "xm"(high));
  }
}

// Groups of kSteps steps; `sums`, and three of their vectors of weights, are in registers.
template <int kRows, int kHalves, int kSteps>
inline __attribute__((always_inline)) void AddGroups(const char* const (&rows)[kRows], int groups,
                                                     const int64_t*& offset, const __m256i*& b,
                                                     __m256i (&sums)[kRows][kHalves]) {
  const __m256i ones = _mm256_set1_epi16(1);
  for (; groups > 0; --groups) {
    __m256i b0 = b[0], b1 = b[1], b2 = b[kSteps > 1 ? 2 : 0];
    asm("" : "+x"(b0), "+x"(b1), "+x"(b2));
    const int64_t x0 = offset[0], x1 = offset[kSteps > 1], x2 = offset[kSteps > 2 ? 2 : 0], x3 = offset[kSteps - 1];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      __m256i pairs[kHalves];
      AddPairs<true, kHalves>(rows[r] + x0, b0, b1, pairs);
      if constexpr (kSteps > 1) AddPairs<false, kHalves>(rows[r] + x1, b2, b[3], pairs);
      if constexpr (kSteps > 2) AddPairs<false, kHalves>(rows[r] + x2, b[4], b[5], pairs);
      if constexpr (kSteps > 3) AddPairs<false, kHalves>(rows[r] + x3, b[6], b[7], pairs);
#pragma GCC unroll 2
      for (int half = 0; half < kHalves; ++half) {
        sums[r][half] = _mm256_add_epi32(sums[r][half], _mm256_madd_epi16(pairs[half], ones));
      }
    }
    offset += kSteps;
    b += 2 * kSteps;
  }
}

constexpr int64_t kLine = 64;  // Bytes.

// A chunk of a panel: `all` but for its weights and where the dwords of rows are that these take. (A Multiply that is
// copied by vectors, right after it was written, waits for all that came before.)
struct PairChunk {
  const Multiply& all;
  const PairGroups& groups;
  const int64_t* offsets;
  const void* weights;
};

// kRows rows a tile, from a on. Before each come `lines` of all.next.
template <int kRows, int kHalves>
__attribute__((noinline)) void MultiplyPairTiles(const PairChunk& chunk, const char* a, int32_t* c, int tiles,
                                                 int64_t lines) {
  const Multiply& m = chunk.all;
  const PairGroups& groups = chunk.groups;
  const char* next = static_cast<const char*>(m.next);
  for (; tiles > 0; --tiles, a += kRows * m.a_stride, c += kRows * m.c_stride) {
    for (const char* end = next + lines * kLine; next < end; next += kLine) _mm_prefetch(next, _MM_HINT_T1);
    const char* rows[kRows];
    __m256i sums[kRows][kHalves];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      rows[r] = a + r * m.a_stride;
#pragma GCC unroll 2
      for (int half = 0; half < kHalves; ++half) {
        const auto* from = reinterpret_cast<const __m256i*>(c + r * m.c_stride + 8 * half);
        sums[r][half] = m.accumulate ? _mm256_loadu_si256(from) : _mm256_setzero_si256();
      }
    }
    const int64_t* offset = chunk.offsets;
    const auto* b = static_cast<const __m256i*>(chunk.weights);
    AddGroups<kRows, kHalves, 4>(rows, groups.count[0], offset, b, sums);
    AddGroups<kRows, kHalves, 3>(rows, groups.count[1], offset, b, sums);
    AddGroups<kRows, kHalves, 2>(rows, groups.count[2], offset, b, sums);
    AddGroups<kRows, kHalves, 1>(rows, groups.count[3], offset, b, sums);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int half = 0; half < kHalves; ++half) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(c + r * m.c_stride + 8 * half), sums[r][half]);
      }
    }
  }
}

inline int64_t PartsOf(const PairGroups& groups) {
  int64_t parts = 0;
  for (int i = 0; i < kMaxGroupParts; ++i)
    parts += int64_t{static_cast<uint32_t>(groups.count[i])} * (kMaxGroupParts - i);
  return parts;
}

// Any number of rows times a chunk of a panel; kHalf: of half a panel where Multiply says so, in whole tiles of rows.
template <bool kHalf>
void MultiplyPairs(const Multiply& all) {
  const int64_t most = all.depth * all.parts_of_step;
  const auto& found = *static_cast<const PairGroups*>(all.b);
  // Where weights come from a file, numbers may be any.
  const PairGroups groups = PartsOf(found) <= most ? found : PairGroups{};
  const int64_t parts = PartsOf(groups);
  int64_t offsets[kMaxPairParts];  // In the order of the groups.
  for (int64_t i = 0; i < parts; ++i) {
    const int64_t step = found.steps()[i];
    offsets[i] = all.offsets[step < 0 || step >= all.depth ? 0 : step];
  }
  const PairChunk chunk = {all, groups, offsets, static_cast<const char*>(all.b) + PairWeightsOffset(most)};
  // The next chunk has about as many parts.
  const int64_t lines = all.next == nullptr ? 0 : PairWeightsOffset(most) / kLine + parts;
  const int tiles = all.rows / kPairTileRows;
  const int64_t lines_of_tile = tiles > 0 ? (lines + tiles - 1) / tiles : 0;
  const char* a = static_cast<const char*>(all.a);
  int32_t* c = all.c;
  if (kHalf && all.half) {
    MultiplyPairTiles<kPairTileRows, kHalf ? 1 : 2>(chunk, a, c, tiles, lines_of_tile);
  } else {
    MultiplyPairTiles<kPairTileRows, 2>(chunk, a, c, tiles, lines_of_tile);
  }
  a += tiles * kPairTileRows * all.a_stride;
  c += tiles * kPairTileRows * all.c_stride;
  if (all.rows % kPairTileRows >= 2) {
    MultiplyPairTiles<2, 2>(chunk, a, c, 1, 0);
    a += 2 * all.a_stride;
    c += 2 * all.c_stride;
  }
  if (all.rows % 2 == 1) MultiplyPairTiles<1, 2>(chunk, a, c, 1, 0);
}

}  // namespace
}  // namespace fuselage::kernels

#endif  // FUSELAGE_KERNELS_CORE_MULTIPLY_MULTIPLY_PAIRS_AVX2_H_
