#include <cstring>

#include "kernels/core/activate_avx512.h"
#include "kernels/core/avx512.h"
#include "kernels/int8/linear/linear.h"

namespace fuselage::int8::linear {
namespace {

namespace core = kernels::FUSELAGE_AVX512_VNNI;

constexpr int64_t kBlock = 16, kGroup = 4;

inline __m512i BroadcastGroup(const uint8_t* x) {
  int32_t group;
  std::memcpy(&group, x, sizeof(group));
  return _mm512_set1_epi32(group);
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

// One row's 16 * kVectors channels from `n`, of which `count` are stored.
template <int kVectors>
inline void Store(const Params& p, const core::OutputCodes& codes, const __m512i* sums, int64_t row, int64_t n,
                  int64_t count, void* y) {
  __m512 v[4];
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) v[j] = _mm512_setzero_ps();
  const __m512 row_multiplier = _mm512_set1_ps(p.row_multiplier == nullptr ? 1.0f : p.row_multiplier[row]);
  const __m512i row_addend = _mm512_set1_epi32(p.row_addend == nullptr ? 0 : p.row_addend[row]);
#pragma GCC unroll 4
  for (int j = 0; j < kVectors; ++j) {
    const __m512i addend = _mm512_loadu_si512(p.addend + n + kBlock * j);
    const __m512 sum = _mm512_cvtepi32_ps(_mm512_add_epi32(sums[j], _mm512_add_epi32(addend, row_addend)));
    const __m512 multiplier = _mm512_loadu_ps(p.multiplier + n + kBlock * j);
    if (p.float_output) {
      v[j] = _mm512_fmadd_ps(sum, _mm512_mul_ps(multiplier, row_multiplier),
                             _mm512_loadu_ps(p.float_bias + n + kBlock * j));
      if (p.relu) v[j] = _mm512_max_ps(v[j], _mm512_setzero_ps());
    } else {
      v[j] = _mm512_mul_ps(sum, multiplier);
    }
  }
  if (p.function != nullptr) core::ActivateVectors<4>(*p.function, p.function_multiplier, v);
  if (p.float_output) {
    CopyFull<kBlock * kVectors * sizeof(float)>(v, count * sizeof(float),
                                                static_cast<float*>(y) + row * p.channels + n);
  } else {
    const __m512i q = core::ToCodes(v[0], v[1], v[2], v[3], codes);
    CopyFull<kBlock * kVectors>(&q, count, static_cast<uint8_t*>(y) + row * p.channels + n);
  }
}

// Not inlined: the caller's constants would take its registers.
template <int kRows, int kVectors>
__attribute__((noinline)) void Tile(const Params& p, const core::OutputCodes& codes, const uint8_t* x, int64_t row,
                                    int64_t n, int64_t count, void* y) {
  __m512i sums[kRows][kVectors];
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) sums[i][j] = _mm512_setzero_si512();
  }
  const int8_t* weight = p.weight + n * p.depth;
  for (int64_t k = 0; k < p.depth; k += kGroup) {
    __m512i w[kVectors];
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) w[j] = _mm512_loadu_si512(weight + kBlock * (j * p.depth + k));
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) {
      const __m512i group = BroadcastGroup(x + (row + i) * p.depth + k);
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j) sums[i][j] = _mm512_dpbusd_epi32(sums[i][j], group, w[j]);
    }
  }
  for (int i = 0; i < kRows; ++i) Store<kVectors>(p, codes, sums[i], row + i, n, count, y);
}

template <int kVectors>
inline void Strip(const Params& p, const core::OutputCodes& codes, const uint8_t* x, const Range& range, int64_t n,
                  int64_t count, void* y) {
  int64_t row = range.row_begin;
  for (; row + 4 <= range.row_end; row += 4) Tile<4, kVectors>(p, codes, x, row, n, count, y);
  for (; row < range.row_end; ++row) Tile<1, kVectors>(p, codes, x, row, n, count, y);
}

}  // namespace

void FUSELAGE_AVX512_VNNI::Run(const Params& p, const void* x, void* y, const Range& range) {
  const uint8_t* packed = static_cast<const uint8_t*>(x);
  const core::OutputCodes codes = core::MakeOutputCodes(p.zero_point, p.lo, p.hi, p.flip);
  const int64_t end = range.channel_end;
  int64_t n = range.channel_begin;
  for (; n + 64 <= end; n += 64) Strip<4>(p, codes, packed, range, n, 64, y);
  for (; n < end; n += 16) Strip<1>(p, codes, packed, range, n, end - n < 16 ? end - n : 16, y);
}

}  // namespace fuselage::int8::linear
