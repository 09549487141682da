#include <string.h>

#include "kernels/core/avx512.h"
#include "kernels/int8/matmul/operands.h"

// Panels of 16 columns in groups of four: a vector holds the codes of a group.
namespace fuselage::int8::matmul {
namespace {

constexpr int64_t kColumns = 16, kGroup = 4, kGroupBytes = kColumns * kGroup;

// Groups as they follow in a panel, whose u8 codes are added up by column and become i8 codes.
class Groups {
 public:
  explicit Groups(int8_t* to) : to_(to) {}

  void Add(__m512i codes) {
    sums_ = _mm512_dpbusd_epi32(sums_, codes, _mm512_set1_epi8(1));
    _mm512_storeu_si512(to_, _mm512_xor_si512(codes, _mm512_set1_epi8(static_cast<char>(0x80))));
    to_ += kGroupBytes;
  }
  void StoreSums(uint32_t* sums) const { _mm512_storeu_si512(sums, sums_); }

 private:
  int8_t* to_;
  __m512i sums_ = _mm512_setzero_si512();
};

// v[j] = the j-th dwords of v[0], v[1], ...
inline void Transpose16(__m512i* v) {
  __m512i w[16];
  // Within lanes of four dwords,
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    const __m512i a = _mm512_unpacklo_epi32(v[i], v[i + 1]), b = _mm512_unpackhi_epi32(v[i], v[i + 1]);
    const __m512i c = _mm512_unpacklo_epi32(v[i + 2], v[i + 3]), d = _mm512_unpackhi_epi32(v[i + 2], v[i + 3]);
    w[i] = _mm512_unpacklo_epi64(a, c);
    w[i + 1] = _mm512_unpackhi_epi64(a, c);
    w[i + 2] = _mm512_unpacklo_epi64(b, d);
    w[i + 3] = _mm512_unpackhi_epi64(b, d);
  }
  // and then the lanes.
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512i a = _mm512_shuffle_i32x4(w[i], w[i + 4], 0x88), b = _mm512_shuffle_i32x4(w[i + 8], w[i + 12], 0x88);
    const __m512i c = _mm512_shuffle_i32x4(w[i], w[i + 4], 0xdd), d = _mm512_shuffle_i32x4(w[i + 8], w[i + 12], 0xdd);
    v[i] = _mm512_shuffle_i32x4(a, b, 0x88);
    v[i + 4] = _mm512_shuffle_i32x4(c, d, 0x88);
    v[i + 8] = _mm512_shuffle_i32x4(a, b, 0xdd);
    v[i + 12] = _mm512_shuffle_i32x4(c, d, 0xdd);
  }
}

}  // namespace

// Four groups at a time, each in a lane: a vector has one of their four rows of b.
void FUSELAGE_AVX512_VNNI::PackPanel(const Right& b, int64_t first, int64_t depth, int8_t* to, uint32_t* sums) {
  constexpr int64_t kRows = 4 * kGroup;
  const int64_t columns = b.columns - first;
  const __m512i flip = _mm512_set1_epi8(static_cast<char>(b.flip));
  // Of what is beyond the edges the code is 128.
  const __m128i outside = _mm_set1_epi8(static_cast<char>(0x80 ^ b.flip));
  const auto row = [&](int64_t k) {
    if (k >= b.rows) return outside;
    const uint8_t* from = b.codes + k * b.columns + first;
    if (columns >= kColumns) return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    uint8_t codes[kColumns];
    memset(codes, 0x80 ^ b.flip, sizeof(codes));
    memcpy(codes, from, columns);
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes));
  };
  Groups groups(to);
  for (int64_t k = 0; k < depth; k += kRows) {
    __m512i rows[kGroup];
#pragma GCC unroll 4
    for (int64_t g = 0; g < kGroup; ++g) {
      __m512i lanes = _mm512_castsi128_si512(row(k + g));
      lanes = _mm512_inserti32x4(lanes, row(k + kGroup + g), 1);
      lanes = _mm512_inserti32x4(lanes, row(k + 2 * kGroup + g), 2);
      rows[g] = _mm512_xor_si512(_mm512_inserti32x4(lanes, row(k + 3 * kGroup + g), 3), flip);
    }
    // Part i of each lane has columns [4 i, 4 i + 4).
    const __m512i a = _mm512_unpacklo_epi8(rows[0], rows[1]), c = _mm512_unpacklo_epi8(rows[2], rows[3]);
    const __m512i e = _mm512_unpackhi_epi8(rows[0], rows[1]), h = _mm512_unpackhi_epi8(rows[2], rows[3]);
    const __m512i p0 = _mm512_unpacklo_epi16(a, c), p1 = _mm512_unpackhi_epi16(a, c);
    const __m512i p2 = _mm512_unpacklo_epi16(e, h), p3 = _mm512_unpackhi_epi16(e, h);
    const __m512i low01 = _mm512_shuffle_i32x4(p0, p1, 0x44), high01 = _mm512_shuffle_i32x4(p0, p1, 0xee);
    const __m512i low23 = _mm512_shuffle_i32x4(p2, p3, 0x44), high23 = _mm512_shuffle_i32x4(p2, p3, 0xee);
    const __m512i all[] = {_mm512_shuffle_i32x4(low01, low23, 0x88), _mm512_shuffle_i32x4(low01, low23, 0xdd),
                           _mm512_shuffle_i32x4(high01, high23, 0x88), _mm512_shuffle_i32x4(high01, high23, 0xdd)};
#pragma GCC unroll 4
    for (int64_t i = 0; i < 4; ++i) {
      if (k + i * kGroup < depth) groups.Add(all[i]);
    }
  }
  groups.StoreSums(sums);
}

// Sixteen columns by 64 features at a time.
void FUSELAGE_AVX512_VNNI::PackTransposedPanel(const Right& b, int64_t first, int64_t depth, int8_t* to,
                                               uint32_t* sums) {
  constexpr int64_t kFeatures = 64;
  const __m512i flip = _mm512_set1_epi8(static_cast<char>(b.flip));
  Groups groups(to);
  for (int64_t k = 0; k < depth; k += kFeatures) {
    const int64_t features = b.rows - k < kFeatures ? b.rows - k : kFeatures;
    const uint64_t own = ~uint64_t{0} >> (kFeatures - features);
    uint8_t beyond[kFeatures] = {};  // As above, the code is 128.
    memset(beyond + features, 0x80 ^ b.flip, kFeatures - features);
    const __m512i outside = _mm512_loadu_si512(beyond);
    __m512i v[kColumns];
#pragma GCC unroll 16
    for (int64_t n = 0; n < kColumns; ++n) {
      const int64_t column = first + n;
      v[n] = column < b.columns ? _mm512_or_si512(_mm512_maskz_loadu_epi8(own, b.codes + column * b.rows + k), outside)
                                : _mm512_set1_epi8(static_cast<char>(0x80 ^ b.flip));
    }
    Transpose16(v);
#pragma GCC unroll 16
    for (int64_t i = 0; i < kColumns; ++i) {
      if (k + i * kGroup < depth) groups.Add(_mm512_xor_si512(v[i], flip));
    }
  }
  groups.StoreSums(sums);
}

}  // namespace fuselage::int8::matmul
