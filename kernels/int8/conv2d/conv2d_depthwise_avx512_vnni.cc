// AVX-512 VNNI's depthwise convolution: blocks of 64 channels, and four taps for vpdpbusd to multiply and add, exactly.
//
// Tests build this source a second time with FUSELAGE_EMULATE_AVX512: portable forms of the AVX-512 intrinsics.
#include "kernels/int8/conv2d/output_avx2.h"
#include "kernels/int8/conv2d/output_avx512.h"
#include "kernels/int8/conv2d/primitives.h"
#include "kernels/int8/conv2d/simd.h"

namespace fuselage::int8::conv2d {
namespace {

constexpr int kBlockPanels = 4;
constexpr int kBlock = kBlockPanels * kPanel;
constexpr int kMostPixels = 4;  // Sixteen registers of sums.

inline __mmask64 First(int count) { return count >= kBlock ? ~uint64_t{0} : (uint64_t{1} << count) - 1; }

// kPanels: how many of the block's exist; kWhole: all of its channels do.
template <int kPanels, bool kWhole, bool kFlip>
void InterleaveColumns(const DepthwiseColumns& columns) {
  // Lane i of a permuted pixel has channels 4*i to 4*i + 3 of each panel: what the unpacks leave are panels.
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i flips = _mm512_set1_epi8(static_cast<char>(columns.flip));
  const __mmask64 existing = First(columns.channels);
  const uint8_t *row0 = columns.rows[0], *row1 = columns.rows[1], *row2 = columns.rows[2], *row3 = columns.rows[3];
  const int64_t step0 = columns.steps[0], step1 = columns.steps[1], step2 = columns.steps[2], step3 = columns.steps[3];
  const int64_t count = columns.count, to_step = columns.to_step;
  const auto load = [&](const uint8_t* pixel) {
    const __m512i codes = kWhole ? _mm512_loadu_si512(pixel) : _mm512_maskz_loadu_epi8(existing, pixel);
    const __m512i permuted = _mm512_permutexvar_epi32(order, codes);
    return kFlip ? _mm512_xor_si512(permuted, flips) : permuted;
  };
  char* to = static_cast<char*>(columns.to);
  for (int64_t column = 0; column < count; ++column, to += to_step) {
    const __m512i a = load(row0), b = load(row1), c = load(row2), d = load(row3);
    const __m512i low_ab = _mm512_unpacklo_epi8(a, b), low_cd = _mm512_unpacklo_epi8(c, d);
    _mm512_storeu_si512(to, _mm512_unpacklo_epi16(low_ab, low_cd));
    if (kPanels > 1) _mm512_storeu_si512(to + kPanelBytes, _mm512_unpackhi_epi16(low_ab, low_cd));
    const __m512i high_ab = _mm512_unpackhi_epi8(a, b), high_cd = _mm512_unpackhi_epi8(c, d);
    if (kPanels > 2) _mm512_storeu_si512(to + 2 * kPanelBytes, _mm512_unpacklo_epi16(high_ab, high_cd));
    if (kPanels > 3) _mm512_storeu_si512(to + 3 * kPanelBytes, _mm512_unpackhi_epi16(high_ab, high_cd));
    row0 += step0, row1 += step1, row2 += step2, row3 += step3;
  }
}

template <bool kFlip>
void InterleaveBlock(const DepthwiseColumns& columns) {
  if (columns.channels == kBlock) return InterleaveColumns<kBlockPanels, true, kFlip>(columns);
  switch ((columns.channels + kPanel - 1) / kPanel) {
    case 1: return InterleaveColumns<1, false, kFlip>(columns);
    case 2: return InterleaveColumns<2, false, kFlip>(columns);
    case 3: return InterleaveColumns<3, false, kFlip>(columns);
    default: return InterleaveColumns<4, false, kFlip>(columns);
  }
}

void Interleave(const DepthwiseColumns& columns) {
  return columns.flip == 0 ? InterleaveBlock<false>(columns) : InterleaveBlock<true>(columns);
}

template <int kPanels, int kPixels>
struct Sums {
  __m512i of[kPixels][kPanels];
};

template <int kPanels, int kPixels>
inline Sums<kPanels, kPixels> Multiplied(const DepthwiseProduct& product, int64_t pixel) {
  Sums<kPanels, kPixels> sums;
#pragma GCC unroll 4
  for (int i = 0; i < kPixels; ++i) {
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) sums.of[i][p] = _mm512_setzero_si512();
  }
  const char* weight = static_cast<const char*>(product.weight);
  const uint8_t* columns = product.columns + pixel * product.pixel_step;
  const int64_t step = product.pixel_step, depth = product.depth;
  for (int64_t d = 0; d < depth; ++d, weight += kBlockPanels * kPanelBytes) {
    const uint8_t* column = columns + product.offsets[d];
    __m512i weights[kPanels];
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) weights[p] = _mm512_loadu_si512(weight + p * kPanelBytes);
#pragma GCC unroll 4
    for (int i = 0; i < kPixels; ++i) {
#pragma GCC unroll 4
      for (int p = 0; p < kPanels; ++p) {
        const __m512i taps = _mm512_loadu_si512(column + i * step + p * kPanelBytes);
        sums.of[i][p] = _mm512_dpbusd_epi32(sums.of[i][p], taps, weights[p]);
      }
    }
  }
  return sums;
}

// Codes of the block's first kPanels panels; with a residual they are whole.
template <int kPanels, bool kResidual>
struct BlockCodes {
  BlockCodes(const OutputStage& stage, const Destination& to) : constants(WideConstantsOf(stage)), to(to) {
    for (int p = 0; p < kPanels; ++p) panels[p] = WidePanelOf(stage, to.channel + p * kPanel);
  }

  template <int kPixels>
  inline void Store(const Sums<kPanels, kPixels>& sums, int64_t pixel) const {
    const __mmask64 existing = First(to.channels);
#pragma GCC unroll 4
    for (int i = 0; i < kPixels; ++i) {
      const uint8_t* residual = kResidual ? to.residual + (pixel + i) * to.residual_pixel_stride : nullptr;
      __m512 v[kBlockPanels];
#pragma GCC unroll 4
      for (int p = 0; p < kBlockPanels; ++p) {
        const int panel = p < kPanels ? p : 0;  // A panel that does not exist repeats the first.
        v[p] = WideValues<kResidual>(constants, panels[panel], sums.of[i][panel], residual + panel * kPanel);
      }
      const __m512i codes = core::ToCodes(v[0], v[1], v[2], v[3], constants.codes);
      uint8_t* out = static_cast<uint8_t*>(to.output) + (pixel + i) * to.pixel_stride;
      if (to.channels == kBlock) {
        _mm512_storeu_si512(out, codes);
      } else {
        _mm512_mask_storeu_epi8(out, existing, codes);
      }
    }
  }

  const WideConstants constants;
  const Destination to;
  WidePanel panels[kPanels];
};

// Whatever the outputs are, a panel at a time.
template <OutputKind kKind, int kPanels>
struct PanelOutputs {
  PanelOutputs(const OutputStage& stage, const Destination& to) : to(to) {
    for (int p = 0; p < kPanels; ++p) panels[p] = PanelConstantsOf(stage, to.channel + p * kPanel);
  }

  template <int kPixels>
  inline void Store(const Sums<kPanels, kPixels>& sums, int64_t pixel) const {
    for (int i = 0; i < kPixels; ++i) {
      for (int p = 0; p < kPanels; ++p) {
        StoreAvx2<kKind>(panels[p], to, (pixel + i) * to.pixel_stride + p * kPanel,
                         (pixel + i) * to.residual_pixel_stride + p * kPanel, to.channels - p * kPanel,
                         _mm512_castsi512_si256(sums.of[i][p]), _mm512_extracti64x4_epi64(sums.of[i][p], 1));
      }
    }
  }

  const Destination to;
  PanelConstants panels[kPanels];
};

template <int kPanels, typename Outputs>
void MultiplyRow(const Outputs& outputs, const DepthwiseProduct& row) {
  const DepthwiseProduct product = row;
  int64_t pixel = 0;
  for (; pixel + kMostPixels <= product.pixels; pixel += kMostPixels) {
    outputs.Store(Multiplied<kPanels, kMostPixels>(product, pixel), pixel);
  }
  switch (product.pixels - pixel) {
    case 1: return outputs.Store(Multiplied<kPanels, 1>(product, pixel), pixel);
    case 2: return outputs.Store(Multiplied<kPanels, 2>(product, pixel), pixel);
    case 3: return outputs.Store(Multiplied<kPanels, 3>(product, pixel), pixel);
    default: return;
  }
}

template <int kPanels>
void MultiplyPanels(const OutputStage& stage, const Destination& to, const DepthwiseProduct& row) {
  switch (OutputKindOf(stage)) {
    case OutputKind::kCodes: return MultiplyRow<kPanels>(BlockCodes<kPanels, false>(stage, to), row);
    case OutputKind::kCodesWithResidual:
      if (to.channels % kPanel == 0) return MultiplyRow<kPanels>(BlockCodes<kPanels, true>(stage, to), row);
      return MultiplyRow<kPanels>(PanelOutputs<OutputKind::kCodesWithResidual, kPanels>(stage, to), row);
    case OutputKind::kFloat: return MultiplyRow<kPanels>(PanelOutputs<OutputKind::kFloat, kPanels>(stage, to), row);
  }
}

void MultiplyBlock(const OutputStage& stage, const Destination& to, const DepthwiseProduct& row) {
  switch ((to.channels + kPanel - 1) / kPanel) {
    case 1: return MultiplyPanels<1>(stage, to, row);
    case 2: return MultiplyPanels<2>(stage, to, row);
    case 3: return MultiplyPanels<3>(stage, to, row);
    default: return MultiplyPanels<4>(stage, to, row);
  }
}

constexpr DepthwisePrimitives kDepthwise = {/*dword_rows=*/4, /*block_panels=*/kBlockPanels, /*interleave_steps=*/4,
                                            /*interleave=*/Interleave, /*multiply=*/MultiplyBlock};

}  // namespace

#ifdef FUSELAGE_EMULATE_AVX512
const DepthwisePrimitives& DepthwiseAvx512VnniEmulated() { return kDepthwise; }
#else
const DepthwisePrimitives& DepthwiseAvx512Vnni() { return kDepthwise; }
#endif

}  // namespace fuselage::int8::conv2d
