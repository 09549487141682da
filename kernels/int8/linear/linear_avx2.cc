#include "kernels/int8/linear/linear_tile_avx2.h"

namespace fuselage::int8::linear {
namespace {

// Weights stay i8 in memory and are widened on the way: vpmaddwd is exact where vpmaddubsw saturates.
struct WordProduct {
  using Input = int16_t;
  static constexpr int64_t kGroup = 2;
  static inline __m256i Weights(const int8_t* w) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(w)));
  }
  static inline __m256i Add(__m256i sum, __m256i x, __m256i w) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(w, x));
  }
};

// vpmaddubsw adds two products u8 * i8 in 16 bits, exactly where Epilogue::pairs_fit: three instructions for 32
// products where words take four.
struct PairProduct {
  using Input = uint8_t;
  static constexpr int64_t kGroup = 4;
  static inline __m256i Weights(const int8_t* w) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(w)); }
  static inline __m256i Add(__m256i sum, __m256i x, __m256i w) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(x, w), _mm256_set1_epi16(1)));
  }
};

}  // namespace

void avx2::Run(const Params& p, const void* x, void* y, const Range& range) { RunTiles<WordProduct>(p, x, y, range); }
void avx2::RunPairs(const Params& p, const void* x, void* y, const Range& range) {
  RunTiles<PairProduct>(p, x, y, range);
}

}  // namespace fuselage::int8::linear
