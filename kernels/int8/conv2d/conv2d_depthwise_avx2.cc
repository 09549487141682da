// AVX2's depthwise convolution: blocks of 16 channels, and two taps, widened to int16, for vpmaddwd to multiply and
// add. (vpmaddubsw, which takes bytes, saturates.)
#include <string.h>

#include "kernels/int8/conv2d/output_avx2.h"
#include "kernels/int8/conv2d/primitives.h"
#include "kernels/int8/conv2d/simd.h"

namespace fuselage::int8::conv2d {
namespace {

constexpr int kMostPixels = 4;  // Eight registers of sums.

inline __m256i LoadVector(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }

// The last channels are copied first, so that nothing is read past the tensor's end.
template <bool kWhole>
inline __m128i LoadCodes(const uint8_t* pixel, int count, __m128i flips) {
  uint8_t copy[kPanel] = {};
  if (!kWhole) {
    memcpy(copy, pixel, count);
    pixel = copy;
  }
  return _mm_xor_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(pixel)), flips);
}

template <bool kWhole>
void InterleaveColumns(const DepthwiseColumns& columns) {
  const __m128i flips = _mm_set1_epi8(static_cast<char>(columns.flip));
  const uint8_t *row0 = columns.rows[0], *row1 = columns.rows[1];
  const int64_t step0 = columns.steps[0], step1 = columns.steps[1], to_step = columns.to_step, count = columns.count;
  const int channels = columns.channels;
  char* to = static_cast<char*>(columns.to);
  for (int64_t column = 0; column < count; ++column, row0 += step0, row1 += step1, to += to_step) {
    const __m128i a = LoadCodes<kWhole>(row0, channels, flips), b = LoadCodes<kWhole>(row1, channels, flips);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(a, b)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 32), _mm256_cvtepi8_epi16(_mm_unpackhi_epi8(a, b)));
  }
}

void Interleave(const DepthwiseColumns& columns) {
  return columns.channels >= kPanel ? InterleaveColumns<true>(columns) : InterleaveColumns<false>(columns);
}

template <OutputKind kKind, int kPixels>
inline void Outputs(const PanelConstants& constants, const Destination& to, const DepthwiseProduct& product,
                    int64_t pixel) {
  __m256i sums[kPixels][2];
#pragma GCC unroll 4
  for (int p = 0; p < kPixels; ++p) sums[p][0] = sums[p][1] = _mm256_setzero_si256();
  const char* weight = static_cast<const char*>(product.weight);
  const uint8_t* columns = product.columns + pixel * product.pixel_step;
  const int64_t step = product.pixel_step, depth = product.depth;
  for (int64_t d = 0; d < depth; ++d, weight += kPanelBytes) {
    const uint8_t* column = columns + product.offsets[d];
    const __m256i w0 = LoadVector(weight), w1 = LoadVector(weight + 32);
#pragma GCC unroll 4
    for (int p = 0; p < kPixels; ++p) {
      sums[p][0] = _mm256_add_epi32(sums[p][0], _mm256_madd_epi16(LoadVector(column + p * step), w0));
      sums[p][1] = _mm256_add_epi32(sums[p][1], _mm256_madd_epi16(LoadVector(column + p * step + 32), w1));
    }
  }
#pragma GCC unroll 4
  for (int p = 0; p < kPixels; ++p) {
    StoreAvx2<kKind>(constants, to, (pixel + p) * to.pixel_stride, (pixel + p) * to.residual_pixel_stride, to.channels,
                     sums[p][0], sums[p][1]);
  }
}

template <OutputKind kKind>
void MultiplyRow(const OutputStage& stage, const Destination& to, const DepthwiseProduct& row) {
  const PanelConstants constants = PanelConstantsOf(stage, to.channel);
  const Destination place = to;
  const DepthwiseProduct product = row;
  int64_t pixel = 0;
  for (; pixel + kMostPixels <= product.pixels; pixel += kMostPixels) {
    Outputs<kKind, kMostPixels>(constants, place, product, pixel);
  }
  switch (product.pixels - pixel) {
    case 1: return Outputs<kKind, 1>(constants, place, product, pixel);
    case 2: return Outputs<kKind, 2>(constants, place, product, pixel);
    case 3: return Outputs<kKind, 3>(constants, place, product, pixel);
    default: return;
  }
}

void MultiplyColumns(const OutputStage& stage, const Destination& to, const DepthwiseProduct& row) {
  switch (OutputKindOf(stage)) {
    case OutputKind::kCodes: return MultiplyRow<OutputKind::kCodes>(stage, to, row);
    case OutputKind::kCodesWithResidual: return MultiplyRow<OutputKind::kCodesWithResidual>(stage, to, row);
    case OutputKind::kFloat: return MultiplyRow<OutputKind::kFloat>(stage, to, row);
  }
}

constexpr DepthwisePrimitives kDepthwise = {/*dword_rows=*/2, /*block_panels=*/1, /*interleave_steps=*/2,
                                            /*interleave=*/Interleave, /*multiply=*/MultiplyColumns};

}  // namespace

const DepthwisePrimitives& DepthwiseAvx2() { return kDepthwise; }

}  // namespace fuselage::int8::conv2d
