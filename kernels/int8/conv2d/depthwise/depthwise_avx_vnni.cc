// AVX-VNNI's depthwise convolution: four taps for vpdpbusd to multiply and add, exactly, or as many channels of a
// group.
#include "kernels/core/avx_vnni.h"
#include "kernels/int8/conv2d/depthwise/loops.h"
#include "kernels/int8/conv2d/depthwise/product.h"
#include "kernels/int8/conv2d/depthwise/ymm.h"

namespace fuselage::int8::conv2d::depthwise::FUSELAGE_AVX_VNNI {
namespace {

struct AvxVnni : Ymm {
  static inline Vector Add(Vector sum, Vector taps, Vector weights) {
    return _mm256_dpbusd_avx_epi32(sum, taps, weights);
  }
};

// A column's pixels in four rows.
struct Pixels {
  Pixels Channel(int channel) const { return {a + channel, b + channel, c + channel, d + channel}; }

  const uint8_t *a, *b, *c, *d;
};

// The taps of sixteen channels.
inline void InterleavePanel(__m128i a, __m128i b, __m128i c, __m128i d, char* to) {
  const __m128i low_ab = _mm_unpacklo_epi8(a, b), low_cd = _mm_unpacklo_epi8(c, d);
  const __m128i high_ab = _mm_unpackhi_epi8(a, b), high_cd = _mm_unpackhi_epi8(c, d);
  __m128i* const dwords = reinterpret_cast<__m128i*>(to);
  _mm_storeu_si128(dwords, _mm_unpacklo_epi16(low_ab, low_cd));
  _mm_storeu_si128(dwords + 1, _mm_unpackhi_epi16(low_ab, low_cd));
  _mm_storeu_si128(dwords + 2, _mm_unpacklo_epi16(high_ab, high_cd));
  _mm_storeu_si128(dwords + 3, _mm_unpackhi_epi16(high_ab, high_cd));
}

// Those of 32. The unpacks go by halves of a vector: each has every other four channels.
inline void InterleaveTwoPanels(const Pixels& from, __m256i flips, char* to) {
  const __m256i order = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
  const auto load = [&](const uint8_t* pixel) {
    return _mm256_xor_si256(_mm256_permutevar8x32_epi32(Ymm::Load(pixel), order), flips);
  };
  const __m256i a = load(from.a), b = load(from.b), c = load(from.c), d = load(from.d);
  const __m256i low_ab = _mm256_unpacklo_epi8(a, b), low_cd = _mm256_unpacklo_epi8(c, d);
  const __m256i high_ab = _mm256_unpackhi_epi8(a, b), high_cd = _mm256_unpackhi_epi8(c, d);
  Ymm::Store(to, _mm256_unpacklo_epi16(low_ab, low_cd));
  Ymm::Store(to + sizeof(__m256i), _mm256_unpackhi_epi16(low_ab, low_cd));
  Ymm::Store(to + 2 * sizeof(__m256i), _mm256_unpacklo_epi16(high_ab, high_cd));
  Ymm::Store(to + 3 * sizeof(__m256i), _mm256_unpackhi_epi16(high_ab, high_cd));
}

void Interleave(const Columns& columns) {
  const __m256i wide_flips = _mm256_set1_epi8(static_cast<char>(columns.flip));
  const __m128i flips = _mm256_castsi256_si128(wide_flips);
  const int channels = columns.channels;
  const auto interleave = [&](const Pixels& from, char* dwords) {
    InterleavePanel(LoadCodes(from.a, flips), LoadCodes(from.b, flips), LoadCodes(from.c, flips),
                    LoadCodes(from.d, flips), dwords);
  };
  const int64_t *steps = columns.steps, step_a = steps[0], step_b = steps[1], step_c = steps[2], step_d = steps[3];
  Pixels pixels = {columns.rows[0], columns.rows[1], columns.rows[2], columns.rows[3]};
  char* to = static_cast<char*>(columns.to);
  for (int64_t column = 0; column < columns.count; ++column, to += columns.to_step) {
    int channel = 0;
    for (; channel + 2 * kPanel <= channels; channel += 2 * kPanel) {
      InterleaveTwoPanels(pixels.Channel(channel), wide_flips, to + channel * kDwordBytes);
    }
    for (; channel + kPanel <= channels; channel += kPanel) {
      interleave(pixels.Channel(channel), to + channel * kDwordBytes);
    }
    if (channel < channels && channels >= kPanel) {  // The last panel begins among the channels before.
      channel = channels - kPanel;
      interleave(pixels.Channel(channel), to + channel * kDwordBytes);
    } else if (channel < channels) {  // Neither the tensor nor the column may go on.
      char dwords[kPanelBytes];
      InterleavePanel(LoadFirstCodes(pixels.a, channels, flips), LoadFirstCodes(pixels.b, channels, flips),
                      LoadFirstCodes(pixels.c, channels, flips), LoadFirstCodes(pixels.d, channels, flips), dwords);
      StoreFirstDwords(dwords, channels, to);
    }
    pixels = {pixels.a + step_a, pixels.b + step_b, pixels.c + step_c, pixels.d + step_d};
  }
}

}  // namespace

Loops GetLoops() {
  Loops loops = avx2::GetLoops();
  loops.dword_elements = 4;
  loops.interleave_steps = 3;
  loops.interleave = Interleave;
  loops.multiply = MultiplyColumns<AvxVnni>;
  loops.multiply_line = MultiplyColumns<Lines<AvxVnni>>;
  return loops;
}

Loops GetGroupLoops() {
  Loops loops = avx2::GetGroupPairLoops();
  loops.multiply = MultiplyGroups<AvxVnni, uint8_t>;
  return loops;
}

}  // namespace fuselage::int8::conv2d::depthwise::FUSELAGE_AVX_VNNI
