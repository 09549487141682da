#include "kernels/core/avx512.h"
#include "kernels/int8/attention/loops.h"

namespace fuselage::int8::attention {
namespace {

static_assert(kLanes == 16, "a vector");

// OneLane's operations.
struct Vector {
  using Floats = __m512;
  using Bits = __m512i;
  static inline __m512 Set(float x) { return _mm512_set1_ps(x); }
  static inline __m512 Add(__m512 a, __m512 b) { return _mm512_add_ps(a, b); }
  static inline __m512 Subtract(__m512 a, __m512 b) { return _mm512_sub_ps(a, b); }
  static inline __m512 Multiply(__m512 a, __m512 b) { return _mm512_mul_ps(a, b); }
  static inline __m512 MultiplyAdd(__m512 a, __m512 b, __m512 c) { return _mm512_fmadd_ps(a, b, c); }
  static inline __m512 Largest(__m512 a, __m512 b) { return _mm512_max_ps(a, b); }
  static inline __m512i BitsOf(__m512 x) { return _mm512_castps_si512(x); }
  static inline __m512 FloatsOf(__m512i bits) { return _mm512_castsi512_ps(bits); }
  static inline __m512i AddBits(__m512i a, __m512i b) { return _mm512_add_epi32(a, b); }
  static inline __m512i ShiftLeft(__m512i bits, int count) { return _mm512_slli_epi32(bits, count); }
};

// Combines all lanes, each of which then has the result.
template <typename Combine>
inline __m512i OfAllLanes(__m512i v, Combine combine) {
  const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  for (const int distance : {8, 4, 2, 1}) {
    v = combine(v, _mm512_permutexvar_epi32(_mm512_xor_si512(lanes, _mm512_set1_epi32(distance)), v));
  }
  return v;
}

// The first n, zeros behind them.
inline __m512 Load(const float* from, int64_t n) {
  if (n >= kLanes) return _mm512_loadu_ps(from);
  if (n <= 0) return _mm512_setzero_ps();
  return _mm512_castsi512_ps(_mm512_maskz_loadu_epi8((uint64_t{1} << (n * sizeof(float))) - 1, from));
}

// As many rows at a time as hide one another's latencies.
constexpr int64_t kRows = 8;

// Adds a row's mask to its scores, kNever behind them. The largest of them, or 0 where it is kNever.
inline __m512 PrepareRow(float* scores, const float* mask, int64_t keys) {
  __m512 largest = _mm512_set1_ps(kNever);
  for (int64_t j = 0; j < keys; j += kLanes) {
    __m512 s = _mm512_loadu_ps(scores + j);
    if (mask != nullptr) s = _mm512_add_ps(s, Load(mask + j, keys - j));
    if (keys - j < kLanes) s = _mm512_mask_mov_ps(_mm512_set1_ps(kNever), (1 << (keys - j)) - 1, s);
    _mm512_storeu_ps(scores + j, s);
    largest = _mm512_max_ps(s, largest);
  }
  largest = _mm512_castsi512_ps(OfAllLanes(_mm512_castps_si512(largest), [](__m512i a, __m512i b) {
    return _mm512_castps_si512(_mm512_max_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b)));
  }));
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(largest, _mm512_set1_ps(kNever), _CMP_NEQ_UQ), largest);
}

// Weights of so many whole vectors of scores, and their sum.
inline int32_t RowWeightsByVectors(const float* scores, __m512 most, int64_t lanes, uint8_t* weights) {
  static_assert((kRoundingBits & 0xFF) == 0, "a code is the lowest byte of what is rounded");
  __m512i sums = _mm512_set1_epi32(static_cast<int32_t>(-(lanes / kLanes) * kRoundingBits));
  for (int64_t j = 0; j < lanes; j += kLanes) {
    const __m512i p = AttentionWeight<Vector>(_mm512_sub_ps(_mm512_loadu_ps(scores + j), most));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(weights + j), _mm512_cvtepi32_epi8(p));
    sums = _mm512_add_epi32(sums, p);
  }
  sums = OfAllLanes(sums, [](__m512i a, __m512i b) { return _mm512_add_epi32(a, b); });
  return _mm_cvtsi128_si32(_mm512_castsi512_si128(sums));
}

}  // namespace

// WeightsLoop by whole vectors, which GCC makes of it only around narrower ones.
void FUSELAGE_AVX512_VNNI::Weights(const Softmax& softmax) {
  if (softmax.softcap != 0) return WeightsLoop(softmax);
  for (int64_t begin = 0; begin < softmax.rows; begin += kRows) {
    const int64_t end = begin + kRows < softmax.rows ? begin + kRows : softmax.rows;
    __m512 most[kRows];
    for (int64_t row = begin; row < end; ++row) {
      most[row - begin] =
          PrepareRow(softmax.scores + row * softmax.score_stride, softmax.masks[row], softmax.keys[row]);
    }
    for (int64_t row = begin; row < end; ++row) {
      const int64_t lanes = WholeLanes(softmax.keys[row]);
      softmax.sums[row] = RowWeightsByVectors(softmax.scores + row * softmax.score_stride, most[row - begin], lanes,
                                              softmax.weights + row * softmax.weight_stride);
      FillRow(softmax, row, lanes);
    }
  }
}

// FinishLoop, by four vectors.
void FUSELAGE_AVX512_VNNI::Finish(const Mixtures& m) {
  if (m.is_float) return FinishLoop(m);
  constexpr int64_t kCodes = 4 * kLanes;
  const auto out = kernels::FUSELAGE_AVX512_VNNI::MakeOutputCodes(m.zero_point, 0, 255, m.flip);
  for (int64_t row = 0; row < m.rows; ++row) {
    const float* sums = m.sums + row * m.width;
    uint8_t* to = static_cast<uint8_t*>(m.y) + row * m.width;
    const __m512 multiplier = _mm512_set1_ps(m.multipliers[row]);
    for (int64_t e = 0; e < m.width; e += kCodes) {
      const auto values = [&](int64_t first) {
        return _mm512_mul_ps(Load(sums + e + first, m.width - e - first), multiplier);
      };
      const __m512i codes = kernels::FUSELAGE_AVX512_VNNI::ToCodes(values(0), values(kLanes), values(2 * kLanes),
                                                                   values(3 * kLanes), out);
      const uint64_t own = m.width - e < kCodes ? (uint64_t{1} << (m.width - e)) - 1 : ~uint64_t{0};
      _mm512_mask_storeu_epi8(to + e, own, codes);
    }
  }
}

}  // namespace fuselage::int8::attention
