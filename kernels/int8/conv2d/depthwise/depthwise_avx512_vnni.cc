// AVX-512 VNNI's depthwise convolution: four taps for vpdpbusd to multiply and add, exactly.
#include "kernels/core/avx512.h"
#include "kernels/int8/conv2d/core/output_avx512.h"
#include "kernels/int8/conv2d/depthwise/loops.h"
#include "kernels/int8/conv2d/depthwise/product.h"

namespace fuselage::int8::conv2d::depthwise::FUSELAGE_AVX512_VNNI {
namespace {

constexpr int kBlockPanels = kBlock / kPanel;
static_assert(kBlockPanels == 4, "a pixel's block is one vector, four panels when its taps are interleaved");

struct Avx512Vnni {
  static constexpr bool kLines = false;
  using Vector = __m512i;
  static inline Vector Zero() { return _mm512_setzero_si512(); }
  static inline Vector Load(const void* p) { return _mm512_loadu_si512(p); }
  static inline void Store(void* p, Vector v) { _mm512_storeu_si512(p, v); }
  static inline int64_t ColumnOffset(int64_t lane, int) { return lane * kDwordBytes; }
  static inline Vector LoadColumn(const void* p) { return Load(p); }
  static inline Vector Add(Vector sum, Vector taps, Vector weights) { return _mm512_dpbusd_epi32(sum, taps, weights); }
};

constexpr int kTilePixels = 4;

// Kernels 3 or 1 wide: the codes of a row, in tiles of four pixels by all channels of the block; the last may repeat
// some of those before it.
template <int kTaps, int kStride, int kPanels>
void RowToCodes(const Product& m, const OutputStage& stage, const Destination& to) {
  const StageConstants constants = StageConstantsOf(stage);
  const int64_t pixel_step = m.pixel_step, tap_step = m.tap_step, runs = m.runs;
  for (int64_t next = 0; next < m.pixels; next += kTilePixels) {
    const int64_t pixel = next + kTilePixels <= m.pixels ? next : m.pixels - kTilePixels;
    const TileCodes codes(stage, constants, to, pixel, 0);
    __m512i sums[kTilePixels][kPanels];
#pragma GCC unroll 4
    for (int panel = 0; panel < kPanels; ++panel) {
#pragma GCC unroll 4
      for (int p = 0; p < kTilePixels; ++p) sums[p][panel] = codes.Bias(panel);
      const uint8_t* weight = m.weight + panel * kPanelBytes;
      for (int64_t run = 0; run < runs; ++run, weight += kTaps * kStepBytes) {
        const uint8_t* column = m.columns + pixel * pixel_step + m.offsets[run] + panel * kPanelBytes;
#pragma GCC unroll 16
        for (int c = 0; c < (kTilePixels - 1) * kStride + kTaps; ++c, column += tap_step) {
          const __m512i taps = _mm512_loadu_si512(column);
#pragma GCC unroll 4
          for (int p = 0; p < kTilePixels; ++p) {
            const int tap = c - p * kStride;
            if (tap < 0 || tap >= kTaps) continue;
            sums[p][panel] = _mm512_dpbusd_epi32(sums[p][panel], taps, _mm512_loadu_si512(weight + tap * kStepBytes));
          }
        }
      }
    }
#pragma GCC unroll 4
    for (int p = 0; p < kTilePixels; ++p) {
#pragma GCC unroll 4
      for (int panel = 0; panel < kPanels; ++panel) core::EndLiveRange(sums[p][panel]);
    }
    codes.Store(sums);
  }
}

template <int kTaps, int kStride>
void RowToCodes(const Product& m, const OutputStage& stage, const Destination& to) {
  switch ((m.channels + kPanel - 1) / kPanel) {
    case 1: return RowToCodes<kTaps, kStride, 1>(m, stage, to);
    case 2: return RowToCodes<kTaps, kStride, 2>(m, stage, to);
    case 3: return RowToCodes<kTaps, kStride, 3>(m, stage, to);
    default: return RowToCodes<kTaps, kStride, 4>(m, stage, to);
  }
}

// Larger kernels, and groups, have enough products to hide what becomes of the sums.
bool MultiplyCodes(const Product& m, const OutputStage& stage, const Destination& to) {
  if (m.runs > 2 || m.pixels < kTilePixels || to.residual != nullptr) return false;
  const bool stride1 = m.pixel_step == m.tap_step, stride2 = m.pixel_step == 2 * m.tap_step;
  if (m.taps == 1 && stride1) return RowToCodes<1, 1>(m, stage, to), true;
  if (m.taps == 3 && stride1) return RowToCodes<3, 1>(m, stage, to), true;
  if (m.taps == 3 && stride2) return RowToCodes<3, 2>(m, stage, to), true;
  return false;
}

// kPanels: how many of the block's exist; kWhole: all of its channels do.
template <int kPanels, bool kWhole, bool kFlip>
void InterleaveColumns(const Columns& columns) {
  // Lane i of a permuted pixel has channels 4*i to 4*i + 3 of each panel: what the unpacks leave are panels.
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i flips = _mm512_set1_epi8(static_cast<char>(columns.flip));
  const uint64_t existing = ~uint64_t{0} >> (kBlock - columns.channels);
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
void InterleaveBlock(const Columns& columns) {
  if (columns.channels == kBlock) return InterleaveColumns<kBlockPanels, true, kFlip>(columns);
  switch ((columns.channels + kPanel - 1) / kPanel) {
    case 1: return InterleaveColumns<1, false, kFlip>(columns);
    case 2: return InterleaveColumns<2, false, kFlip>(columns);
    case 3: return InterleaveColumns<3, false, kFlip>(columns);
    default: return InterleaveColumns<4, false, kFlip>(columns);
  }
}

void Interleave(const Columns& columns) {
  return columns.flip == 0 ? InterleaveBlock<false>(columns) : InterleaveBlock<true>(columns);
}

// kLogDwords: of a group's number of dwords.
template <int kLogDwords>
void SpreadColumns(const Columns& columns) {
  constexpr int kDwords = 1 << kLogDwords;
  const uint64_t existing = ~uint64_t{0} >> (kBlock - columns.channels);
  const __m512i flips = _mm512_set1_epi8(static_cast<char>(columns.flip));
  const __m512i order = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  __m512i dwords[kDwords][kBlockPanels];  // A pixel's, for each lane: lane / (4 * kDwords) * kDwords + d.
  for (int p = 0; p < kBlockPanels; ++p) {
    const __m512i lanes = _mm512_add_epi32(order, _mm512_set1_epi32(p * kPanel));
    const __m512i first = _mm512_slli_epi32(_mm512_srai_epi32(lanes, kLogDwords + 2), kLogDwords);
    for (int d = 0; d < kDwords; ++d) dwords[d][p] = _mm512_add_epi32(first, _mm512_set1_epi32(d));
  }
  const uint8_t* row = columns.rows[0];
  char* to = static_cast<char*>(columns.to);
  const int64_t count = columns.count, step = columns.steps[0], to_step = columns.to_step;
  for (int64_t column = 0; column < count; ++column, row += step, to += to_step) {
    const __m512i codes = _mm512_xor_si512(_mm512_maskz_loadu_epi8(existing, row), flips);
#pragma GCC unroll 4
    for (int d = 0; d < kDwords; ++d) {
#pragma GCC unroll 4
      for (int p = 0; p < kBlockPanels; ++p) {
        _mm512_storeu_si512(to + d * kStepBytes + p * kPanelBytes, _mm512_permutexvar_epi32(dwords[d][p], codes));
      }
    }
  }
}

// Which dword of a pixel's codes a lane of a panel multiplies: the first of its group.
inline __m512i FirstDwords(int panel, int group_channels) {
  const __m512i order = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i lanes = _mm512_add_epi32(order, _mm512_set1_epi32(panel * kPanel));
  const __m512i dwords = _mm512_srai_epi32(lanes, 2);
  return _mm512_andnot_si512(_mm512_set1_epi32(group_channels / 4 - 1), dwords);
}

constexpr int kGroupTaps = 3;

// Some pixels of a row, a panel at a time. A pixel's codes are spread to the lanes of their groups on the way to the
// products of the up to three outputs that read them.
template <int kStride, int kPixels, bool kWhole>
__attribute__((noinline)) void GroupPixels(const InputRows& in, int64_t pixel, const OutputStage& stage,
                                           const StageConstants& constants, const Destination& to) {
  constexpr int kColumns = (kPixels - 1) * kStride + kGroupTaps;
  const uint8_t* columns[kMostKernelRows * kColumns];
  for (int row = 0; row < in.count; ++row) {
    for (int c = 0; c < kColumns; ++c) {
      const int64_t x = in.first_x + pixel * kStride + c;
      const bool inside = in.rows[row] != nullptr && x >= 0 && x < in.width;
      columns[row * kColumns + c] = inside ? in.rows[row] + x * in.pixel_bytes : in.padding;
    }
  }
  const uint64_t existing = ~uint64_t{0} >> (kBlock - in.channels);
  const int dwords = in.group_channels / 4;
  for (int channel = 0; channel < in.channels; channel += kPanel) {
    const TileCodes codes(stage, constants, to, pixel, channel);
    const __m512i bias = in.sums == nullptr ? codes.Bias(0) : _mm512_setzero_si512();
    const __m512i first = FirstDwords(channel / kPanel, in.group_channels);
    const uint8_t* weight = in.weight + channel * kDwordBytes;
    __m512i sums[kPixels][1];
#pragma GCC unroll 8
    for (int p = 0; p < kPixels; ++p) sums[p][0] = bias;
    for (int row = 0; row < in.count; ++row) {
      for (int dword = 0; dword < dwords; ++dword, weight += kGroupTaps * kStepBytes) {
        const __m512i spread = _mm512_add_epi32(first, _mm512_set1_epi32(dword));
        __m512i weights[kGroupTaps];
#pragma GCC unroll 3
        for (int tap = 0; tap < kGroupTaps; ++tap) weights[tap] = _mm512_loadu_si512(weight + tap * kStepBytes);
#pragma GCC unroll 32
        for (int c = 0; c < kColumns; ++c) {
          const uint8_t* column = columns[row * kColumns + c];
          const __m512i x = _mm512_permutexvar_epi32(
              spread, kWhole ? _mm512_loadu_si512(column) : _mm512_maskz_loadu_epi8(existing, column));
#pragma GCC unroll 8
          for (int p = 0; p < kPixels; ++p) {
            const int tap = c - p * kStride;
            if (tap >= 0 && tap < kGroupTaps) sums[p][0] = _mm512_dpbusd_epi32(sums[p][0], x, weights[tap]);
          }
        }
      }
    }
#pragma GCC unroll 8
    for (int p = 0; p < kPixels; ++p) core::EndLiveRange(sums[p][0]);
    if (in.sums == nullptr) {
      codes.Store(sums);
    } else {
#pragma GCC unroll 8
      for (int p = 0; p < kPixels; ++p) _mm512_storeu_si512(in.sums + (pixel + p) * kBlock + channel, sums[p][0]);
    }
  }
}

// The last pixels may be computed again.
template <int kStride, bool kWhole>
void GroupRow(const InputRows& in, const OutputStage& stage, const Destination& to) {
  using Pixels = void(const InputRows&, int64_t, const OutputStage&, const StageConstants&, const Destination&);
  constexpr Pixels* kPixels[] = {GroupPixels<kStride, 4, kWhole>, GroupPixels<kStride, 5, kWhole>,
                                 GroupPixels<kStride, 6, kWhole>, GroupPixels<kStride, 7, kWhole>,
                                 GroupPixels<kStride, 8, kWhole>};
  const StageConstants constants = StageConstantsOf(stage);
  const int64_t tiles = (in.pixels + 7) / 8, together = (in.pixels + tiles - 1) / tiles;
  for (int64_t tile = 0; tile < tiles; ++tile) {
    const int64_t pixel = tile + 1 < tiles ? tile * together : in.pixels - together;
    kPixels[together - kLeastPixels](in, pixel, stage, constants, to);
  }
}

void MultiplyInput(const InputRows& in, const OutputStage& stage, const Destination& to) {
  const bool whole = in.channels == kBlock;
  if (in.stride == 1) return whole ? GroupRow<1, true>(in, stage, to) : GroupRow<1, false>(in, stage, to);
  return whole ? GroupRow<2, true>(in, stage, to) : GroupRow<2, false>(in, stage, to);
}

void Spread(const Columns& columns) {
  switch (columns.group_channels) {
    case 4: return SpreadColumns<0>(columns);
    case 8: return SpreadColumns<1>(columns);
    default: return SpreadColumns<2>(columns);
  }
}

}  // namespace

Loops GetLoops() {
  return {/*dword_elements=*/4,
          /*masks=*/true,
          /*form=*/ColumnForm::kRows,
          /*column_bytes=*/20 << 10,
          /*interleave_steps=*/2.5,
          /*interleave=*/Interleave,
          /*multiply=*/MultiplyColumns<Avx512Vnni>,
          /*multiply_line=*/nullptr,
          /*multiply_codes=*/MultiplyCodes,
          /*multiply_input=*/nullptr};
}

Loops GetGroupLoops() {
  Loops loops = GetLoops();
  loops.form = ColumnForm::kSpread;
  loops.interleave = Spread;
  loops.multiply_codes = nullptr;
  loops.multiply_input = MultiplyInput;
  return loops;
}

}  // namespace fuselage::int8::conv2d::depthwise::FUSELAGE_AVX512_VNNI
