// AVX2's depthwise convolution: two taps of 16 channels at a time, interleaved so that vpmaddwd adds them.
#include <string.h>

#include "kernels/int8/conv2d/output_avx2.h"
#include "kernels/int8/conv2d/primitives.h"
#include "kernels/int8/conv2d/simd.h"

namespace fuselage::int8::conv2d {
namespace {

inline __m256i LoadVector(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }

// Sixteen codes as int16; the last channels are copied first, so that nothing is read past the tensor's end.
template <bool kWhole>
inline __m256i LoadCodes(const uint8_t* pixel, int count, __m128i flips) {
  uint8_t copy[kPanel] = {};
  if (!kWhole) {
    memcpy(copy, pixel, count);
    pixel = copy;
  }
  return _mm256_cvtepi8_epi16(_mm_xor_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(pixel)), flips));
}

// kPairs: of taps, 0 where it is known at run time only.
template <OutputKind kKind, bool kWhole, int kPairs>
void PanelRow(const OutputStage& stage, const Destination& to, const DepthwiseRow& row, int first) {
  const PanelConstants constants = PanelConstantsOf(stage, to.channel + first);
  const Destination place = to;
  const __m128i flips = _mm_set1_epi8(static_cast<char>(row.flip));
  const int taps = row.taps, pairs = kPairs > 0 ? kPairs : (taps + 1) / 2, count = row.channels - first;
  const int16_t* weight = row.weight + int64_t{first} * pairs * 2;
  const uint8_t* const* pixels = row.pixels;
  for (int64_t x = 0; x < row.pixel_count; ++x, pixels += taps) {
    // Channels 0..3 8..11 and 4..7 12..15, as the unpacks leave them.
    __m256i low = _mm256_setzero_si256(), high = _mm256_setzero_si256();
#pragma GCC unroll 5
    for (int pair = 0; pair < pairs; ++pair) {
      const __m256i a = LoadCodes<kWhole>(pixels[2 * pair] + first, count, flips);
      // The weight of a tap that is missing is 0.
      const __m256i b = 2 * pair + 1 == taps ? a : LoadCodes<kWhole>(pixels[2 * pair + 1] + first, count, flips);
      const __m256i w0 = LoadVector(weight + pair * 2 * kPanel), w1 = LoadVector(weight + pair * 2 * kPanel + kPanel);
      const __m256i w_low = _mm256_permute2x128_si256(w0, w1, 0x20), w_high = _mm256_permute2x128_si256(w0, w1, 0x31);
      low = _mm256_add_epi32(low, _mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), w_low));
      high = _mm256_add_epi32(high, _mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), w_high));
    }
    StoreAvx2<kKind>(constants, place, x * place.pixel_stride + first, x * place.residual_pixel_stride + first, count,
                     _mm256_permute2x128_si256(low, high, 0x20), _mm256_permute2x128_si256(low, high, 0x31));
  }
}

template <OutputKind kKind>
void Panels(const OutputStage& stage, const Destination& to, const DepthwiseRow& row) {
  int first = 0;
  for (; first + kPanel <= row.channels; first += kPanel) {
    if (row.taps == 9) {
      PanelRow<kKind, true, 5>(stage, to, row, first);
    } else {
      PanelRow<kKind, true, 0>(stage, to, row, first);
    }
  }
  if (first < row.channels) PanelRow<kKind, false, 0>(stage, to, row, first);
}

void Row(const OutputStage& stage, const Destination& to, const DepthwiseRow& row) {
  switch (OutputKindOf(stage)) {
    case OutputKind::kCodes: return Panels<OutputKind::kCodes>(stage, to, row);
    case OutputKind::kCodesWithResidual: return Panels<OutputKind::kCodesWithResidual>(stage, to, row);
    case OutputKind::kFloat: return Panels<OutputKind::kFloat>(stage, to, row);
  }
}

constexpr DepthwisePrimitives kDepthwise = {/*row=*/Row};

}  // namespace

const DepthwisePrimitives& DepthwiseAvx2() { return kDepthwise; }

}  // namespace fuselage::int8::conv2d
