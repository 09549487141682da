#include "kernels/core/avx2.h"
#include "kernels/int8/attention/loops.h"

namespace fuselage::int8::attention {
namespace {

namespace core = kernels::avx2;

constexpr int64_t kVector = 8;
static_assert(kLanes == 2 * kVector, "two vectors");

// As many rows at a time as hide one another's latencies.
constexpr int64_t kRows = 8;

// The largest of so many whole lanes, or 0 where it is kNever.
inline float LargestOf(const float* scores, int64_t lanes) {
  __m256 largest = _mm256_set1_ps(kNever), other = largest;
  for (int64_t j = 0; j < lanes; j += kLanes) {
    largest = _mm256_max_ps(_mm256_loadu_ps(scores + j), largest);
    other = _mm256_max_ps(_mm256_loadu_ps(scores + j + kVector), other);
  }
  largest = _mm256_max_ps(other, largest);
  __m128 four = _mm_max_ps(_mm256_extractf128_ps(largest, 1), _mm256_castps256_ps128(largest));
  four = _mm_max_ps(_mm_movehl_ps(four, four), four);
  const float all = _mm_cvtss_f32(_mm_max_ss(_mm_movehdup_ps(four), four));
  return all == kNever ? 0.0f : all;
}

// Weights of so many whole lanes of scores, and their sum.
inline int32_t RowWeightsByVectors(const float* scores, float largest, int64_t lanes, uint8_t* weights) {
  const __m256 most = _mm256_set1_ps(largest);
  const __m256i rounding = _mm256_set1_epi32(kRoundingBits);
  const auto codes_at = [&](int64_t j) __attribute__((always_inline)) {
    return _mm256_sub_epi32(AttentionWeight<core::Lanes>(_mm256_sub_ps(_mm256_loadu_ps(scores + j), most)), rounding);
  };
  __m256i sums = _mm256_setzero_si256();
  for (int64_t j = 0; j < lanes; j += kLanes) {
    const __m256i low = codes_at(j), high = codes_at(j + kVector);
    sums = _mm256_add_epi32(sums, _mm256_add_epi32(low, high));
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), _MM_SHUFFLE(3, 1, 2, 0));
    const __m128i codes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(weights + j), codes);
  }
  __m128i four = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
  four = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
  return _mm_cvtsi128_si32(four) + _mm_extract_epi32(four, 1);
}

}  // namespace

// WeightsLoop by whole vectors: GCC finds the largest lane by lane, and a row waits for that of the one before it.
void avx2::Weights(const Softmax& softmax) {
  for (int64_t row = 0; row < softmax.rows; ++row) AdjustScores(softmax, row);
  for (int64_t begin = 0; begin < softmax.rows; begin += kRows) {
    const int64_t end = begin + kRows < softmax.rows ? begin + kRows : softmax.rows;
    float largest[kRows];
    for (int64_t row = begin; row < end; ++row) {
      largest[row - begin] = LargestOf(softmax.scores + row * softmax.score_stride, WholeLanes(softmax.keys[row]));
    }
    for (int64_t row = begin; row < end; ++row) {
      const int64_t lanes = WholeLanes(softmax.keys[row]);
      softmax.sums[row] = RowWeightsByVectors(softmax.scores + row * softmax.score_stride, largest[row - begin], lanes,
                                              softmax.weights + row * softmax.weight_stride);
      FillRow(softmax, row, lanes);
    }
  }
}

// FinishLoop by vectors, of which GCC makes none.
void avx2::Finish(const Mixtures& m) {
  if (m.is_float) return FinishLoop(m);
  constexpr int64_t kCodes = 4 * kVector;
  const core::OutputCodes out = core::MakeOutputCodes(m.zero_point, 0, 255, m.flip);
  const __m256i numbers = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  for (int64_t row = 0; row < m.rows; ++row) {
    const float* sums = m.sums + row * m.stride;
    uint8_t* to = static_cast<uint8_t*>(m.y) + row * m.width;
    const __m256 multiplier = _mm256_set1_ps(m.multipliers[row]);
    const auto value = [&](__m256 sum) { return _mm256_mul_ps(sum, multiplier); };
    int64_t e = 0;
    for (; e + kCodes <= m.width; e += kCodes) {
      const float* s = sums + e;
      const __m256i codes =
          core::ToCodes(value(_mm256_loadu_ps(s)), value(_mm256_loadu_ps(s + kVector)),
                        value(_mm256_loadu_ps(s + 2 * kVector)), value(_mm256_loadu_ps(s + 3 * kVector)), out);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + e), codes);
    }
    for (; e < m.width; e += kVector) {
      const int count = static_cast<int>(m.width - e < kVector ? m.width - e : kVector);
      const __m256i first = _mm256_cmpgt_epi32(_mm256_set1_epi32(count), numbers);
      const __m256 zero = _mm256_setzero_ps();
      const __m256i codes = core::ToCodes(value(_mm256_maskload_ps(sums + e, first)), zero, zero, zero, out);
      core::StoreFirst(_mm256_castsi256_si128(codes), count, to + e);
    }
  }
}

void avx2::Scores(const FewScores& few) { ScoresLoop(few); }

void avx2::Mix(const FewMixtures& few) { MixLoop(few); }

}  // namespace fuselage::int8::attention
