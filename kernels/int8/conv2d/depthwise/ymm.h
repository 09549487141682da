// What AVX2 and AVX-VNNI share: vectors of 8 lanes, and groups, whose columns have a dword once. Everything is local to
// the including source: see core/loops.h.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_DEPTHWISE_YMM_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_DEPTHWISE_YMM_H_

#include <immintrin.h>
#include <string.h>

#include "kernels/core/avx2.h"
#include "kernels/int8/conv2d/depthwise/loops.h"
#include "kernels/int8/conv2d/depthwise/product.h"

namespace fuselage::int8::conv2d::depthwise {
namespace {

struct Ymm {
  static constexpr bool kLines = false;
  using Vector = __m256i;
  static inline Vector Zero() { return _mm256_setzero_si256(); }
  static inline Vector Load(const void* p) { return _mm256_loadu_si256(static_cast<const Vector*>(p)); }
  static inline void Store(void* p, Vector v) { _mm256_storeu_si256(static_cast<Vector*>(p), v); }
  static inline int64_t ColumnOffset(int64_t lane, int) { return lane * kDwordBytes; }
  static inline Vector LoadColumn(const void* p) { return Load(p); }
};

template <typename Base>
struct Lines : Base {
  static constexpr bool kLines = true;
};

// Groups of 4: two of them are the lanes, of one or two dwords each. What else is loaded, past the column's end too, is
// not used.
template <typename Base, typename Element>
struct Groups4 : Base {
  static inline int64_t ColumnOffset(int64_t lane, int) { return lane * int64_t{sizeof(Element)}; }
  static inline __m256i LoadColumn(const void* p) {
    constexpr int kSecond = sizeof(Element);  // The second group's dword.
    const __m256i both = _mm256_broadcastsi128_si256(_mm_loadu_si128(static_cast<const __m128i*>(p)));
    const __m256i order = _mm256_setr_epi32(0, 0, 0, 0, kSecond, kSecond, kSecond, kSecond);
    return _mm256_castps_si256(_mm256_permutevar_ps(_mm256_castsi256_ps(both), order));
  }
};

// Groups of a multiple of 8: the lanes are one's.
template <typename Base, typename Element>
struct Groups8 : Base {
  static inline int64_t ColumnOffset(int64_t lane, int group_channels) {
    return (lane & -group_channels) * int64_t{sizeof(Element)};
  }
  static inline __m256i LoadColumn(const void* p) {
    int32_t dword;
    memcpy(&dword, p, sizeof(dword));
    return _mm256_set1_epi32(dword);
  }
};

template <typename Base, typename Element>
void MultiplyGroups(const Product& m) {
  m.group_channels == 4 ? MultiplyColumns<Groups4<Base, Element>>(m) : MultiplyColumns<Groups8<Base, Element>>(m);
}

inline __m128i LoadCodes(const uint8_t* pixel, __m128i flips) {
  return _mm_xor_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(pixel)), flips);
}
inline __m128i LoadFirstCodes(const uint8_t* pixel, int count, __m128i flips) {
  return _mm_xor_si128(kernels::avx2::LoadFirst(pixel, count), flips);
}

// The first `count` of sixteen dwords.
inline void StoreFirstDwords(const char* dwords, int count, char* to) {
  for (; count >= 4; count -= 4, dwords += 16, to += 16) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_loadu_si128(reinterpret_cast<const __m128i*>(dwords)));
  }
  if (count == 0) return;
  const __m128i last = _mm_loadu_si128(reinterpret_cast<const __m128i*>(dwords));
  kernels::avx2::StoreFirst(last, count * kDwordBytes, reinterpret_cast<uint8_t*>(to));
}

// A row's codes as they are.
inline void Copy(const Columns& columns) {
  const __m128i flips = _mm_set1_epi8(static_cast<char>(columns.flip));
  const uint8_t* row = columns.rows[0];
  const int channels = columns.channels;
  char* to = static_cast<char*>(columns.to);
  for (int64_t column = 0; column < columns.count; ++column, row += columns.steps[0], to += columns.to_step) {
    int channel = 0;
    for (; channel + kPanel <= channels; channel += kPanel) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + channel), LoadCodes(row + channel, flips));
    }
    if (channel == channels) continue;
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + channel),
                     LoadFirstCodes(row + channel, channels - channel, flips));
  }
}

}  // namespace
}  // namespace fuselage::int8::conv2d::depthwise

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_DEPTHWISE_YMM_H_
