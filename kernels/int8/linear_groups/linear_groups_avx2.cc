// One row reads packed weights once, from memory: they are multiplied as they are unpacked, unsigned. For several rows
// they are unpacked first, signed, and rows are unsigned (x + 128): so that vpmaddubsw takes weights from memory, and
// the sums of four steps of the depth go together as in other products of small weights
// (kernels/core/multiply/multiply_pairs_avx2.h): at most 4 * 2 * 255 * 12 = 24,480. 128 times a group's weights is
// taken off again.
#include <immintrin.h>

#include <array>
#include <cstring>

#include "kernels/core/multiply/multiply_pairs_avx2.h"
#include "kernels/int8/linear_groups/linear_groups.h"

namespace fuselage::int8::linear_groups {
namespace {

constexpr int64_t kBlock = 16, kHalves = 2;  // A vector has eight channels.
constexpr int64_t kVector = 32;              // Bytes.
constexpr int64_t kLine = 64;
// Of what one row reads from memory.
constexpr int64_t kPrefetchAhead = 2048;

template <typename T>
inline __m256i Load(const T* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
template <typename T>
inline void Store(T* to, __m256i x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), x);
}

inline __m256i Broadcast(const int8_t* x) {
  int32_t dword;
  std::memcpy(&dword, x, sizeof(dword));
  return _mm256_set1_epi32(dword);
}

// Codes of four bits, of the first four features of eight and of those behind them.
struct Codes {
  explicit Codes(const uint8_t* from) : Codes(Load(from)) {}
  explicit Codes(__m256i bytes)
      : first(_mm256_and_si256(bytes, _mm256_set1_epi8(15))),
        behind(_mm256_and_si256(_mm256_srli_epi16(bytes, 4), _mm256_set1_epi8(15))) {}
  __m256i first, behind;
};

inline __m256i Mxfp4Weights(__m256i codes) {
  const __m128i table = _mm_loadu_si128(reinterpret_cast<const __m128i*>(kMxfp4Weights));
  return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), codes);
}

// The scales of a group of eight channels, from the `first` on. MXFP4's are E8M0, whose half, 2^(scale - 128), is a
// normal float.
template <Format kFormat>
inline __m256 Factors(const Params& p, int64_t first) {
  if constexpr (kFormat != Format::kMxfp4) return _mm256_loadu_ps(static_cast<const float*>(p.scale) + first);
  const __m128i codes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(static_cast<const uint8_t*>(p.scale) + first));
  const __m256i exponents = _mm256_sub_epi32(_mm256_cvtepu8_epi32(codes), _mm256_set1_epi32(1));
  return _mm256_castsi256_ps(_mm256_slli_epi32(exponents, 23));
}

// Of the same channels: what unsigned weights of 0 stand for.
template <Format kFormat>
inline __m256i Least(const Params& p, int64_t first) {
  if (kFormat != Format::kInt4 || p.least == nullptr) return _mm256_set1_epi32(LeastOf(kFormat));
  return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p.least + first)));
}

// --- One row.

// The products of eight features, as 16-bit sums of two features or four.
template <Format kFormat>
inline __m256i Products(const uint8_t* weight, __m256i x0, __m256i x1) {
  Codes codes(weight);
  if constexpr (kFormat == Format::kMxfp4) {
    codes.first = Mxfp4Weights(codes.first);
    codes.behind = Mxfp4Weights(codes.behind);
  }
  return _mm256_add_epi16(_mm256_maddubs_epi16(codes.first, x0), _mm256_maddubs_epi16(codes.behind, x1));
}

// Sixteen features of eight channels.
template <Format kFormat>
inline __m256i AddSixteen(__m256i sum, const uint8_t* weight, const __m256i (&x)[4]) {
  const __m256i ones = _mm256_set1_epi16(1);
  if constexpr (kFormat != Format::kInt8) {
    const __m256i pairs = _mm256_add_epi16(Products<kFormat>(weight, x[0], x[1]),
                                           Products<kFormat>(weight + kHalves * kVector, x[2], x[3]));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, ones));
  } else {
    __m256i low[4], high[4];  // A byte is 16 high + low.
#pragma GCC unroll 4
    for (int step = 0; step < 4; ++step) {
      const Codes nibbles(weight + step * kHalves * kVector);
      low[step] = _mm256_maddubs_epi16(nibbles.first, x[step]);
      high[step] = _mm256_maddubs_epi16(nibbles.behind, x[step]);
    }
    const auto add = [](const __m256i(&pairs)[4]) {
      return _mm256_add_epi16(_mm256_add_epi16(pairs[0], pairs[1]), _mm256_add_epi16(pairs[2], pairs[3]));
    };
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(add(low), ones));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(add(high), _mm256_set1_epi16(16)));
  }
}

template <Format kFormat>
void RunRow(const Params& p, int64_t n, float* y) {
  constexpr int64_t kBytes =
      kFormat == Format::kInt8 ? 4 * kHalves * kVector : 2 * kHalves * kVector;  // Of 16 features.
  const uint8_t* weight = p.weight + n * p.groups * p.units * p.unit_bytes;
  const int8_t* features = p.x;
  __m256 totals[kHalves] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  for (int64_t g = 0; g < p.groups; ++g) {
    const int64_t first = n * p.groups + g * kBlock;
    const __m256i x_sum = _mm256_set1_epi32(p.x_sums[g]);
    __m256i sums[kHalves] = {_mm256_madd_epi16(Least<kFormat>(p, first), x_sum),
                             _mm256_madd_epi16(Least<kFormat>(p, first + 8), x_sum)};
    for (int64_t i = 0; i < 2 * p.units; ++i, weight += kBytes, features += 16) {
      for (int64_t line = 0; line < kBytes; line += kLine) {
        _mm_prefetch(reinterpret_cast<const char*>(weight + kPrefetchAhead + line), _MM_HINT_T0);
      }
      const __m256i x[4] = {Broadcast(features), Broadcast(features + 4), Broadcast(features + 8),
                            Broadcast(features + 12)};
      sums[0] = AddSixteen<kFormat>(sums[0], weight, x);
      sums[1] = AddSixteen<kFormat>(sums[1], weight + kVector, x);
    }
    totals[0] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[0]), Factors<kFormat>(p, first), totals[0]);
    totals[1] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[1]), Factors<kFormat>(p, first + 8), totals[1]);
  }
  _mm256_storeu_ps(y, totals[0]);
  _mm256_storeu_ps(y + 8, totals[1]);
}

// --- Several rows.

constexpr int64_t kSteps = kChunk / 4;  // Of four features.
constexpr std::array<int64_t, kSteps> kOffsets = [] {
  std::array<int64_t, kSteps> offsets = {};
  for (int64_t i = 0; i < kSteps; ++i) offsets[i] = 4 * i;
  return offsets;
}();

// Some groups of a block, signed. Bytes are 16 high + low, in [-8, 8], and a group's high ones come first.
struct Unpacked {
  alignas(kVector) int8_t weight[2 * kChunk * kBlock];
  int32_t sums[kChunk / kUnit][kBlock];  // -128 times those of a group's weights.
};

// Adds what one step's weights of eight channels are, four bytes each, to `pairs` of 16 bits.
inline void StoreStep(int8_t* to, __m256i weights, __m256i& pairs) {
  Store(to, weights);
  pairs = _mm256_add_epi16(pairs, _mm256_maddubs_epi16(_mm256_set1_epi8(1), weights));
}

// A group of eight channels, of a block whose steps are 2 * kVector bytes.
template <Format kFormat>
void UnpackGroup(const uint8_t* weight, int64_t units, int8_t* to, int32_t* sums) {
  constexpr int64_t kStep = kHalves * kVector;
  const __m256i eights = _mm256_set1_epi8(8);
  __m256i pairs = _mm256_setzero_si256(), high_pairs = _mm256_setzero_si256();
  for (int64_t i = 0; i < units * kUnit / 8; ++i) {
    if constexpr (kFormat == Format::kInt8) {
#pragma GCC unroll 2
      for (int step = 0; step < 2; ++step, weight += kStep, to += kStep) {
        const __m256i byte = Load(weight);
        const Codes nibbles(byte);
        const __m256i carry = _mm256_and_si256(_mm256_srli_epi16(byte, 3), _mm256_set1_epi8(1));
        StoreStep(to, _mm256_sub_epi8(_mm256_add_epi8(nibbles.behind, carry), eights), high_pairs);
        StoreStep(to + units * kUnit / 4 * kStep, _mm256_sub_epi8(_mm256_xor_si256(nibbles.first, eights), eights),
                  pairs);
      }
    } else {
      const Codes codes(weight);
      const auto signed_of = [&](__m256i code) {
        if constexpr (kFormat == Format::kInt4) return _mm256_sub_epi8(code, eights);
        return _mm256_add_epi8(Mxfp4Weights(code), _mm256_set1_epi8(LeastOf(kFormat)));
      };
      StoreStep(to, signed_of(codes.first), pairs);
      StoreStep(to + kStep, signed_of(codes.behind), pairs);
      weight += kStep;
      to += 2 * kStep;
    }
  }
  if constexpr (kFormat == Format::kInt8) pairs = _mm256_add_epi16(pairs, _mm256_slli_epi16(high_pairs, 4));
  Store(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(-128)));
}

// Adds those groups, `count` from the `begin`th on, of kRows rows to `totals`. Not inlined: the caller's constants
// would take its registers.
template <int kRows, Format kFormat>
__attribute__((noinline)) void AddRows(const Params& p, const Unpacked& unpacked, int64_t row, int64_t n, int64_t begin,
                                       int64_t count, float (*totals)[kBlock]) {
  const char* rows[kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    rows[r] = reinterpret_cast<const char*>(p.x) + (row + r) * p.depth + begin * p.units * kUnit;
  }
  const int steps_of_four = static_cast<int>(p.units) * 2;
  const auto* weight = reinterpret_cast<const __m256i*>(unpacked.weight);
  const int64_t* offset = kOffsets.data();
  for (int64_t g = 0; g < count; ++g) {
    const int64_t first = n * p.groups + (begin + g) * kBlock;
    __m256i sums[kRows][kHalves];
    if constexpr (kFormat == Format::kInt8) {
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) sums[r][0] = sums[r][1] = _mm256_setzero_si256();
      const int64_t* same = offset;
      kernels::AddGroups<kRows, kHalves, 4>(rows, steps_of_four, same, weight, sums);
    }
#pragma GCC unroll 2
    for (int half = 0; half < kHalves; ++half) {
      const __m256i sum = Load(unpacked.sums[g] + 8 * half);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        if constexpr (kFormat == Format::kInt8) {
          sums[r][half] = _mm256_add_epi32(_mm256_slli_epi32(sums[r][half], 4), sum);
        } else {
          sums[r][half] = sum;
        }
      }
      if (kFormat == Format::kInt4 && p.least != nullptr) {
        const __m256i least =
            _mm256_sub_epi32(Least<kFormat>(p, first + 8 * half), _mm256_set1_epi32(LeastOf(kFormat)));
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) {
          const __m256i x_sum = _mm256_set1_epi32(p.x_sums[(row + r) * p.groups + begin + g]);
          sums[r][half] = _mm256_add_epi32(sums[r][half], _mm256_madd_epi16(least, x_sum));
        }
      }
    }
    kernels::AddGroups<kRows, kHalves, 4>(rows, steps_of_four, offset, weight, sums);
    asm("" : "+r"(totals));  // In memory: they would take registers that products need.
#pragma GCC unroll 2
    for (int half = 0; half < kHalves; ++half) {
      const __m256 factor = Factors<kFormat>(p, first + 8 * half);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        float* total = totals[r] + 8 * half;
        _mm256_storeu_ps(total, _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[r][half]), factor, _mm256_loadu_ps(total)));
      }
    }
  }
}

template <Format kFormat>
void RunRows(const Params& p, const Range& range, int64_t n, float (*totals)[kBlock]) {
  Unpacked unpacked;
  std::memset(totals, 0, (range.row_end - range.row_begin) * sizeof(*totals));
  const int64_t group_bytes = p.units * p.unit_bytes * kBlock, most = kChunk / kUnit / p.units;
  const int64_t to_bytes = p.units * kUnit * kBlock * (kFormat == Format::kInt8 ? 2 : 1);
  for (int64_t begin = 0; begin < p.groups; begin += most) {
    const int64_t count = p.groups - begin < most ? p.groups - begin : most;
    for (int64_t g = 0; g < count; ++g) {
      const uint8_t* weight = p.weight + n / kBlock * p.groups * group_bytes + (begin + g) * group_bytes;
      for (int64_t half = 0; half < kHalves; ++half) {
        UnpackGroup<kFormat>(weight + half * kVector, p.units, unpacked.weight + g * to_bytes + half * kVector,
                             unpacked.sums[g] + 8 * half);
      }
    }
    float(*to)[kBlock] = totals;
    int64_t row = range.row_begin;
    for (; row + 4 <= range.row_end; row += 4, to += 4) AddRows<4, kFormat>(p, unpacked, row, n, begin, count, to);
    for (; row + 2 <= range.row_end; row += 2, to += 2) AddRows<2, kFormat>(p, unpacked, row, n, begin, count, to);
    if (row < range.row_end) AddRows<1, kFormat>(p, unpacked, row, n, begin, count, to);
  }
}

template <Format kFormat>
void RunFormat(const Params& p, const Range& range) {
  float totals[kTaskRows][kBlock];
  for (int64_t n = range.channel_begin; n < range.channel_end; n += kBlock) {
    if (p.rows == 1) {
      RunRow<kFormat>(p, n, totals[0]);
    } else {
      RunRows<kFormat>(p, range, n, totals);
    }
    const int64_t count = range.channel_end - n < kBlock ? range.channel_end - n : kBlock;
    for (int64_t row = range.row_begin; row < range.row_end; ++row) {
      float* total = totals[row - range.row_begin];
      for (int half = 0; half < kHalves; ++half) {
        const __m256 bias = _mm256_loadu_ps(p.bias + n + 8 * half);
        const __m256 y = _mm256_fmadd_ps(_mm256_loadu_ps(total + 8 * half), _mm256_set1_ps(p.x_scale[row]), bias);
        _mm256_storeu_ps(total + 8 * half, y);
      }
      std::memcpy(p.y + row * p.channels + n, total, count * sizeof(float));
    }
  }
}

}  // namespace

void avx2::Run(const Params& p, const Range& range) {
  switch (p.format) {
    case Format::kMxfp4: return RunFormat<Format::kMxfp4>(p, range);
    case Format::kInt4: return RunFormat<Format::kInt4>(p, range);
    case Format::kInt8: return RunFormat<Format::kInt8>(p, range);
  }
}

}  // namespace fuselage::int8::linear_groups
