// AVX2's depthwise convolution: two taps, widened to int16, for vpmaddwd to multiply and add. Groups also take four
// channels, as bytes, which vpmaddubsw adds two by two in 16 bits, exactly where they fit (Pairs::kFit); depthwise
// gains nothing by it.
#include "kernels/core/avx2.h"
#include "kernels/int8/conv2d/depthwise/loops.h"
#include "kernels/int8/conv2d/depthwise/product.h"
#include "kernels/int8/conv2d/depthwise/ymm.h"

namespace fuselage::int8::conv2d::depthwise::avx2 {
namespace {

struct Avx2 : Ymm {
  static inline Vector Add(Vector sum, Vector taps, Vector weights) {
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(taps, weights));
    // Or GCC adds products first, of which there are more than registers.
    __asm__("" : "+x"(sum));
    return sum;
  }
};

struct Avx2Pairs : Avx2 {
  static inline Vector Add(Vector sum, Vector taps, Vector weights) {
    const Vector pairs = _mm256_madd_epi16(_mm256_maddubs_epi16(taps, weights), _mm256_set1_epi16(1));
    sum = _mm256_add_epi32(sum, pairs);
    __asm__("" : "+x"(sum));
    return sum;
  }
};

// The taps of sixteen channels in two rows.
inline void InterleavePanel(__m128i a, __m128i b, char* to) {
  Ymm::Store(to, _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(a, b)));
  Ymm::Store(to + sizeof(__m256i), _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(a, b)));
}

// Those of 32. The unpacks go by halves of a vector: the first has every other four channels.
inline void InterleaveTwoPanels(const uint8_t* row0, const uint8_t* row1, __m256i flips, char* to) {
  const __m256i order = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7), zero = _mm256_setzero_si256();
  const __m256i a = _mm256_xor_si256(_mm256_permutevar8x32_epi32(Ymm::Load(row0), order), flips);
  const __m256i b = _mm256_xor_si256(_mm256_permutevar8x32_epi32(Ymm::Load(row1), order), flips);
  const __m256i low = _mm256_unpacklo_epi8(a, b), high = _mm256_unpackhi_epi8(a, b);
  Ymm::Store(to, _mm256_unpacklo_epi8(low, zero));
  Ymm::Store(to + sizeof(__m256i), _mm256_unpackhi_epi8(low, zero));
  Ymm::Store(to + 2 * sizeof(__m256i), _mm256_unpacklo_epi8(high, zero));
  Ymm::Store(to + 3 * sizeof(__m256i), _mm256_unpackhi_epi8(high, zero));
}

void Interleave(const Columns& columns) {
  const __m256i wide_flips = _mm256_set1_epi8(static_cast<char>(columns.flip));
  const __m128i flips = _mm256_castsi256_si128(wide_flips);
  const uint8_t *row0 = columns.rows[0], *row1 = columns.rows[1];
  const int64_t step0 = columns.steps[0], step1 = columns.steps[1], to_step = columns.to_step, count = columns.count;
  const int channels = columns.channels;
  char* to = static_cast<char*>(columns.to);
  for (int64_t column = 0; column < count; ++column, row0 += step0, row1 += step1, to += to_step) {
    int channel = 0;
    for (; channel + 2 * kPanel <= channels; channel += 2 * kPanel) {
      InterleaveTwoPanels(row0 + channel, row1 + channel, wide_flips, to + channel * kDwordBytes);
    }
    for (; channel + kPanel <= channels; channel += kPanel) {
      InterleavePanel(LoadCodes(row0 + channel, flips), LoadCodes(row1 + channel, flips), to + channel * kDwordBytes);
    }
    if (channel == channels) continue;
    if (channels >= kPanel) {  // The last panel begins among the channels before.
      channel = channels - kPanel;
      InterleavePanel(LoadCodes(row0 + channel, flips), LoadCodes(row1 + channel, flips), to + channel * kDwordBytes);
      continue;
    }
    // Neither the tensor nor the column may go on.
    char dwords[kPanelBytes];
    InterleavePanel(LoadFirstCodes(row0, channels, flips), LoadFirstCodes(row1, channels, flips), dwords);
    StoreFirstDwords(dwords, channels, to);
  }
}

// A row's codes as int16.
void Widen(const Columns& columns) {
  const __m128i flips = _mm_set1_epi8(static_cast<char>(columns.flip));
  const uint8_t* row = columns.rows[0];
  const int64_t step = columns.steps[0], to_step = columns.to_step, count = columns.count;
  const int channels = columns.channels;
  int16_t* to = static_cast<int16_t*>(columns.to);
  for (int64_t column = 0; column < count; ++column, row += step, to += to_step / int64_t{sizeof(*to)}) {
    int channel = 0;
    for (; channel + kPanel <= channels; channel += kPanel) {
      Ymm::Store(to + channel, _mm256_cvtepu8_epi16(LoadCodes(row + channel, flips)));
    }
    if (channel == channels) continue;
    Ymm::Store(to + channel, _mm256_cvtepu8_epi16(LoadFirstCodes(row + channel, channels - channel, flips)));
  }
}

}  // namespace

Loops GetLoops() {
  return {/*dword_elements=*/2,
          /*masks=*/false,
          /*form=*/ColumnForm::kRows,
          /*column_bytes=*/32 << 10,
          /*interleave_steps=*/2,
          /*interleave=*/Interleave,
          /*multiply=*/MultiplyColumns<Avx2>,
          /*multiply_line=*/MultiplyColumns<Lines<Avx2>>,
          /*multiply_codes=*/nullptr,
          /*multiply_input=*/nullptr};
}

Loops GetGroupLoops() {
  Loops loops = GetLoops();
  loops.form = ColumnForm::kGroups;
  loops.interleave = Widen;
  loops.multiply = MultiplyGroups<Avx2, int16_t>;
  loops.multiply_line = nullptr;
  return loops;
}

Loops GetGroupPairLoops() {
  Loops loops = GetGroupLoops();
  loops.dword_elements = 4;
  loops.interleave = Copy;
  loops.multiply = MultiplyGroups<Avx2Pairs, uint8_t>;
  return loops;
}

}  // namespace fuselage::int8::conv2d::depthwise::avx2
