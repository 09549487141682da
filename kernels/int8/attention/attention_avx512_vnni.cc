#include "kernels/core/avx512.h"
#include "kernels/int8/attention/loops.h"

namespace fuselage::int8::attention {
namespace {

static_assert(kLanes == 16, "a vector");

inline __m512 Floats(float x) { return _mm512_set1_ps(x); }

// elementwise::ExpOfNegative.
inline __m512 ExpOfNegative(__m512 x) {
  x = _mm512_max_ps(Floats(-87.0f), x);  // NaN stays.
  const __m512 product = _mm512_mul_ps(x, Floats(1.44269504088896341f));
  const __m512 n = _mm512_sub_ps(_mm512_add_ps(product, Floats(kRound)), Floats(kRound));
  __m512 r = _mm512_fmadd_ps(n, Floats(-0.693359375f), x);
  r = _mm512_fmadd_ps(n, Floats(2.12194440e-4f), r);
  __m512 p = Floats(1.9875691500e-4f);
  p = _mm512_fmadd_ps(p, r, Floats(1.3981999507e-3f));
  p = _mm512_fmadd_ps(p, r, Floats(8.3334519073e-3f));
  p = _mm512_fmadd_ps(p, r, Floats(4.1665795894e-2f));
  p = _mm512_fmadd_ps(p, r, Floats(1.6666665459e-1f));
  p = _mm512_fmadd_ps(p, r, Floats(5.0000001201e-1f));
  const __m512 y = _mm512_add_ps(_mm512_fmadd_ps(p, _mm512_mul_ps(r, r), r), Floats(1.0f));
  const __m512i exponent = _mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127));
  return _mm512_mul_ps(y, _mm512_castsi512_ps(_mm512_slli_epi32(exponent, 23)));
}

// Combines all lanes, each of which then has the result.
template <typename Combine>
inline __m512i OfAllLanes(__m512i v, Combine combine) {
  const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  for (const int distance : {8, 4, 2, 1}) {
    v = combine(v, _mm512_permutexvar_epi32(_mm512_xor_si512(lanes, _mm512_set1_epi32(distance)), v));
  }
  return v;
}

}  // namespace

// WeightsLoop by whole vectors, which GCC makes of it only around narrower ones.
int32_t FUSELAGE_AVX512_VNNI::Weights(const ScoreRow& row, uint8_t* weights) {
  AdjustScores(row);
  __m512 largest = Floats(kNever);
  for (int64_t j = 0; j < row.keys; j += kLanes) largest = _mm512_max_ps(_mm512_loadu_ps(row.scores + j), largest);
  largest = _mm512_castsi512_ps(OfAllLanes(_mm512_castps_si512(largest), [](__m512i a, __m512i b) {
    return _mm512_castps_si512(_mm512_max_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b)));
  }));
  const __m512 most = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(largest, Floats(kNever), _CMP_NEQ_UQ), largest);
  __m512i sums = _mm512_setzero_si512();
  for (int64_t j = 0; j < row.keys; j += kLanes) {
    const __m512 distance = _mm512_sub_ps(_mm512_loadu_ps(row.scores + j), most);
    const __mmask16 near = _mm512_cmp_ps_mask(distance, Floats(-87.0f), _CMP_GE_OQ);
    const __m512 e = _mm512_maskz_mov_ps(near, ExpOfNegative(distance));
    const __m512 rounded = _mm512_add_ps(_mm512_mul_ps(Floats(255.0f), e), Floats(kRound));
    const __m512i p = _mm512_sub_epi32(_mm512_castps_si512(rounded), _mm512_set1_epi32(kRoundBits));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(weights + j), _mm512_cvtepi32_epi8(p));
    sums = _mm512_add_epi32(sums, p);
  }
  sums = OfAllLanes(sums, [](__m512i a, __m512i b) { return _mm512_add_epi32(a, b); });
  return _mm_cvtsi128_si32(_mm512_castsi512_si128(sums));
}

void FUSELAGE_AVX512_VNNI::Finish(const Output& output, const float* sums, float multiplier, int64_t n, void* y) {
  FinishLoop(output, sums, multiplier, n, y);
}

}  // namespace fuselage::int8::attention
