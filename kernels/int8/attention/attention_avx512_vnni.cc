#include "kernels/core/avx512.h"
#include "kernels/int8/attention/loops.h"

namespace fuselage::int8::attention {
namespace {

namespace core = kernels::FUSELAGE_AVX512_VNNI;

static_assert(kLanes == 16, "a vector");

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

// The score at column j of a row of sums.
inline __m512 ScoreOf(const Softmax& softmax, const float* sums, __m512i row_addend, int64_t j) {
  const __m512i sum = _mm512_add_epi32(_mm512_loadu_si512(sums + j), _mm512_loadu_si512(softmax.column_addends + j));
  return _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_add_epi32(sum, row_addend)), _mm512_set1_ps(softmax.multiplier));
}

// Makes scores of a row's sums and adds its mask, kNever behind them. The largest of them, or 0 where it is kNever.
template <bool kAreSums>
inline __m512 PrepareRow(const Softmax& softmax, int64_t row) {
  float* const scores = softmax.scores + row * softmax.score_stride;
  const float* const mask = softmax.masks[row];
  const int64_t keys = softmax.keys[row];
  const __m512i addend = _mm512_set1_epi32(kAreSums ? softmax.row_addends[row] : 0);
  __m512 largest = _mm512_set1_ps(kNever);
  for (int64_t j = 0; j < keys; j += kLanes) {
    __m512 s = kAreSums ? ScoreOf(softmax, scores, addend, j) : _mm512_loadu_ps(scores + j);
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

void MakeScores(const Softmax& softmax, int64_t row) {
  float* const scores = softmax.scores + row * softmax.score_stride;
  const __m512i addend = _mm512_set1_epi32(softmax.row_addends[row]);
  for (int64_t j = 0; j < softmax.keys[row]; j += kLanes) {
    _mm512_storeu_ps(scores + j, ScoreOf(softmax, scores, addend, j));
  }
}

// Weights of so many whole vectors of scores, and their sum.
inline int32_t RowWeightsByVectors(const float* scores, __m512 most, int64_t lanes, uint8_t* weights) {
  static_assert((kRoundingBits & 0xFF) == 0, "a code is the lowest byte of what is rounded");
  __m512i sums = _mm512_set1_epi32(static_cast<int32_t>(-(lanes / kLanes) * kRoundingBits));
  for (int64_t j = 0; j < lanes; j += kLanes) {
    const __m512i p = AttentionWeight<core::Lanes>(_mm512_sub_ps(_mm512_loadu_ps(scores + j), most));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(weights + j), _mm512_cvtepi32_epi8(p));
    sums = _mm512_add_epi32(sums, p);
  }
  sums = OfAllLanes(sums, [](__m512i a, __m512i b) { return _mm512_add_epi32(a, b); });
  return _mm_cvtsi128_si32(_mm512_castsi512_si128(sums));
}

}  // namespace

// WeightsLoop by whole vectors, which GCC makes of it only around narrower ones.
void FUSELAGE_AVX512_VNNI::Weights(const Softmax& softmax) {
  const bool are_sums = softmax.column_addends != nullptr;
  if (softmax.softcap != 0) {
    for (int64_t row = 0; are_sums && row < softmax.rows; ++row) MakeScores(softmax, row);
    return WeightsLoop(softmax);
  }
  for (int64_t begin = 0; begin < softmax.rows; begin += kRows) {
    const int64_t end = begin + kRows < softmax.rows ? begin + kRows : softmax.rows;
    __m512 most[kRows];
    for (int64_t row = begin; row < end; ++row) {
      most[row - begin] = are_sums ? PrepareRow<true>(softmax, row) : PrepareRow<false>(softmax, row);
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
  const bool are_sums = m.row_addends != nullptr;
  constexpr int64_t kCodes = 4 * kLanes;
  const auto out = core::MakeOutputCodes(m.zero_point, 0, 255, m.flip);
  for (int64_t row = 0; row < m.rows; ++row) {
    const float* sums = m.sums + row * m.stride;
    uint8_t* to = static_cast<uint8_t*>(m.y) + row * m.width;
    const __m512 multiplier = _mm512_set1_ps(m.multipliers[row]);
    const __m512i addend = _mm512_set1_epi32(are_sums ? m.row_addends[row] : 0);
    for (int64_t e = 0; e < m.width; e += kCodes) {
      const auto values = [&](int64_t first) {
        __m512 sum = Load(sums + e + first, m.width - e - first);
        if (are_sums) sum = _mm512_cvtepi32_ps(_mm512_add_epi32(_mm512_castps_si512(sum), addend));
        return _mm512_mul_ps(sum, multiplier);
      };
      const __m512i codes = core::ToCodes(values(0), values(kLanes), values(2 * kLanes), values(3 * kLanes), out);
      const uint64_t own = m.width - e < kCodes ? (uint64_t{1} << (m.width - e)) - 1 : ~uint64_t{0};
      _mm512_mask_storeu_epi8(to + e, own, codes);
    }
  }
}

}  // namespace fuselage::int8::attention
