// AVX-512 VNNI: tiles of pixels by up to 64 output channels, whose sums fill the registers that weights and a broadcast
// dword leave. Codes leave by fours of panels or pixels.
#include <string.h>

#include <utility>

#include "kernels/core/avx512.h"
#include "kernels/core/multiply/multiply_avx512.h"
#include "kernels/int8/conv2d/core/load_bytes.h"
#include "kernels/int8/conv2d/core/output_avx512.h"
#include "kernels/int8/conv2d/direct/few.h"

namespace fuselage::int8::conv2d::direct::FUSELAGE_AVX512_VNNI {
namespace {

void MultiplyVnni(const Multiply& m) {
  using kernels::ByteProduct;
  using kernels::MultiplyPanels;
  m.row_offsets != nullptr ? MultiplyPanels<ByteProduct, true>(m) : MultiplyPanels<ByteProduct>(m);
}

// A tile's sums begin with the bias and end as codes.
struct SumsToCodes {
  const Multiply& m;
  const TileCodes codes;

  __attribute__((always_inline)) __m512i Start(int row, int panel) const {
    const __m512i sum = codes.Bias(panel);
    return m.accumulate ? _mm512_add_epi32(sum, _mm512_loadu_si512(m.c + row * m.c_stride + panel * kPanel)) : sum;
  }
  template <int kRows, int kPanels>
  __attribute__((always_inline)) void Finish(const __m512i (&sums)[kRows][kPanels]) const {
    codes.Store(sums);
  }
};

// The residuals of `count` pixels from `pixel` on, for a later tile.
__attribute__((noinline)) void FetchResiduals(const Destination& to, int64_t pixel, int64_t count) {
  for (int64_t i = pixel; to.residual != nullptr && i < pixel + count; ++i) {
    _mm_prefetch(to.residual + i * to.residual_pixel_stride, _MM_HINT_T0);
  }
}

// A line of pixels by kPanels panels, in tiles of at most as many rows as kRows has numbers, from 0 on.
template <int kPanels, int... kRows>
void MultiplyLine(Multiply m, const OutputStage& stage, const Destination& to, std::integer_sequence<int, kRows...>) {
  constexpr void (*kTiles[])(const Multiply&, const SumsToCodes&) = {
      kernels::MultiplyTile<kernels::ByteProduct, kRows + 1, kPanels, false, SumsToCodes>...};
  constexpr int64_t kMost = sizeof...(kRows);
  const StageConstants constants = StageConstantsOf(stage);
  const int64_t pixels = m.rows, tiles = (pixels + kMost - 1) / kMost;
  for (int64_t tile = 0, pixel = 0; tile < tiles; ++tile) {
    const int64_t rows = (pixels - pixel) / (tiles - tile);
    FetchResiduals(to, pixel + rows, rows);
    kTiles[rows - 1](m, {m, {stage, constants, to, pixel, 0}});
    m.a = static_cast<const char*>(m.a) + rows * m.a_stride;
    m.c += rows * m.c_stride;
    m.next = m.next != nullptr && tile + 1 < kPanels ? static_cast<const char*>(m.next) + m.b_stride : nullptr;
    pixel += rows;
  }
}

// Four whole panels: the codes of a pixel are one vector.
template <typename Form>
void FinishWhole(const OutputStage& stage, const Destination& to, const int32_t* c, int64_t c_stride, int pixels) {
  const StageConstants constants = StageConstantsOf(stage);
  PanelConstants panels[4];
  for (int p = 0; p < 4; ++p) panels[p] = PanelConstantsOf(stage, to.channel + p * kPanel);
  uint8_t* out = static_cast<uint8_t*>(to.output);
  const uint8_t* residual = to.residual;
  const int64_t pixel_stride = to.pixel_stride, residual_stride = to.residual_pixel_stride;
  for (int pixel = 0; pixel < pixels; ++pixel, c += c_stride, out += pixel_stride) {
    __m512 v[4];
#pragma GCC unroll 4
    for (int p = 0; p < 4; ++p) {
      v[p] = ValuesOf(panels[p], _mm512_loadu_si512(c + p * kPanel));
      if (Form::residual) v[p] = AddResidual<Form>(constants, LoadCodes<true>(residual + p * kPanel, kPanel), v[p]);
    }
    const __m512i codes = CodesOf<Form, 4>(constants, panels, v);
    _mm512_storeu_si512(out, codes);
    if (Form::residual) residual += residual_stride;
  }
}

// Four pixels of one panel: their codes are one vector. kWhole: all the panel's channels exist.
template <typename Form, bool kWhole>
void FinishCodes(const OutputStage& stage, const Destination& to, const int32_t* c, int64_t c_stride, int pixels) {
  const StageConstants constants = StageConstantsOf(stage);
  const PanelConstants panel = PanelConstantsOf(stage, to.channel);
  const int channels = kWhole ? kPanel : to.channels;
  uint8_t* out = static_cast<uint8_t*>(to.output);
  const uint8_t* const residuals = to.residual;
  const int64_t pixel_stride = to.pixel_stride, residual_stride = to.residual_pixel_stride;
  for (int pixel = 0; pixel < pixels; pixel += 4) {
    const int count = pixels - pixel < 4 ? pixels - pixel : 4;
    __m512 v[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      // A pixel that does not exist repeats the last.
      const int64_t from = i < count ? pixel + i : pixels - 1;
      v[i] = ValuesOf(panel, _mm512_loadu_si512(c + from * c_stride));
      if (!Form::residual) continue;
      const uint8_t* residual = residuals + from * residual_stride;
      v[i] = AddResidual<Form>(constants, LoadCodes<kWhole>(residual, channels), v[i]);
    }
    uint8_t codes[4][kPanel];
    const __m512i all = CodesOf<Form, 1>(constants, &panel, v);
    _mm512_storeu_si512(codes, all);
    for (int i = 0; i < count; ++i, out += pixel_stride) memcpy(out, codes[i], channels);
  }
}

// Sums of so many pixels stay in the first-level cache until they are activated.
constexpr int kActivatedPixels = 4 * kMaxRows;

// Some vectors of values at a time: the panels of a pixel, and those of the next ones.
template <typename Form>
void FinishActivatedCodes(const OutputStage& stage, const Destination& to, const int32_t* c, int64_t c_stride,
                          int pixels) {
  constexpr int kMaxPanels = 4, kVectors = 8;
  const StageConstants constants = StageConstantsOf(stage);
  const int panels = (to.channels + kPanel - 1) / kPanel, pixel_codes = panels * kPanel;
  const uint64_t existing = ~uint64_t{0} >> (kMaxPanels * kPanel - to.channels);
  PanelConstants of_panels[kMaxPanels];
  for (int p = 0; p < panels; ++p) of_panels[p] = PanelConstantsOf(stage, to.channel + p * kPanel);
  uint8_t codes[(kActivatedPixels + 2) * kMaxPanels * kPanel];
  uint8_t* out = static_cast<uint8_t*>(to.output);
  const uint8_t* residual = to.residual;
  const int64_t pixel_stride = to.pixel_stride, residual_stride = to.residual_pixel_stride;
  for (int first = 0; first < pixels; first += kActivatedPixels) {
    const int count = pixels - first < kActivatedPixels ? pixels - first : kActivatedPixels, vectors = count * panels;
    core::WithActivation<kVectors>(*stage.function, [&](auto activate) __attribute__((always_inline)) {
      int panel = 0;
      for (int i = 0; i < vectors; i += kVectors) {
        __m512 v[kVectors];
        int panel_of[kVectors];
#pragma GCC unroll 8
        for (int j = 0; j < kVectors; ++j) {
          panel_of[j] = panel;
          v[j] = ValuesOf(of_panels[panel], _mm512_loadu_si512(c + panel * kPanel));
          if (Form::residual) {
            const __mmask16 in_panel = static_cast<__mmask16>(existing >> panel * kPanel);
            v[j] = AddResidual<Form>(constants, _mm_maskz_loadu_epi8(in_panel, residual + panel * kPanel), v[j]);
          }
          if (i + j + 1 >= vectors || ++panel < panels) continue;  // Beyond the last it repeats.
          panel = 0;
          c += c_stride;
          if (Form::residual) residual += residual_stride;
        }
        activate(v);
#pragma GCC unroll 8
        for (int j = 0; j < kVectors; ++j) v[j] = BehindFunction(of_panels[panel_of[j]], v[j]);
#pragma GCC unroll 2
        for (int j = 0; j < kVectors; j += 4) {
          _mm512_storeu_si512(codes + (i + j) * kPanel,
                              core::ToCodes(v[j], v[j + 1], v[j + 2], v[j + 3], constants.codes));
        }
      }
    });
    c += c_stride;
    if (Form::residual) residual += residual_stride;
    for (int pixel = 0; pixel < count; ++pixel, out += pixel_stride) {
      _mm512_mask_storeu_epi8(out, existing, _mm512_loadu_si512(codes + pixel * pixel_codes));
    }
  }
}

template <bool kWhole>
void FinishFloats(const OutputStage& stage, const Destination& to, const int32_t* c, int64_t c_stride, int pixels) {
  const StageConstants constants = StageConstantsOf(stage);
  const PanelConstants panel = PanelConstantsOf(stage, to.channel);
  float* out = static_cast<float*>(to.output);
  for (int pixel = 0; pixel < pixels; ++pixel, c += c_stride, out += to.pixel_stride) {
    StoreFloats<kWhole>(constants, panel, _mm512_loadu_si512(c), to.channels, out);
  }
}

// The panel of the channels from `first` on.
Destination PanelOf(Destination to, int first, int64_t element_bytes) {
  to.output = static_cast<uint8_t*>(to.output) + first * element_bytes;
  if (to.residual != nullptr) to.residual += first;
  to.channel += first;
  to.channels -= first;
  return to;
}

void FinishPanels(const OutputStage& stage, const Destination& to, const int32_t* c, int64_t c_stride, int pixels) {
  WithOutputForm(stage, [&](auto form) {
    using Form = decltype(form);
    if constexpr (Form::kind == OutputKind::kActivatedCodes) {
      return FinishActivatedCodes<Form>(stage, to, c, c_stride, pixels);
    }
    int64_t element_bytes = 1;
    FinishPixels *whole, *begun;
    if constexpr (Form::kind == OutputKind::kFloat) {
      element_bytes = sizeof(float);
      whole = FinishFloats<true>, begun = FinishFloats<false>;
    } else {
      if (to.channels == 4 * kPanel) return FinishWhole<Form>(stage, to, c, c_stride, pixels);
      whole = FinishCodes<Form, true>, begun = FinishCodes<Form, false>;
    }
    for (int first = 0; first < to.channels; first += kPanel) {
      const Destination panel = PanelOf(to, first, element_bytes);
      (panel.channels >= kPanel ? whole : begun)(stage, panel, c + first, c_stride, pixels);
    }
  });
}

void Finish(const OutputStage& stage, const Destination& to, const int32_t* c, int64_t c_stride, int pixels) {
  // Vectors of a pixel each would be mostly empty.
  const bool few = to.channels <= kMostFewChannels && (stage.is_float || stage.function != nullptr);
  (few ? FinishFew<FinishPanels> : FinishPanels)(stage, to, c, c_stride, pixels);
}

// Functions take longer than registers have room for: sums of some pixels stay in the first-level cache meanwhile.
void MultiplyActivated(Multiply m, const OutputStage& stage, Destination to) {
  constexpr int kPixels = kActivatedPixels;
  alignas(64) int32_t sums[kPixels * 4 * kPanel];
  const int64_t pixels = m.rows;
  int fetched = 0;  // Panels of the weights that come next.
  for (int64_t first = 0, count; first < pixels; first += count) {
    count = pixels - first < kPixels ? pixels - first : kPixels;
    if (!m.accumulate) {
      m.c = sums;
      m.c_stride = m.panels * kPanel;
    }
    int32_t* const of_pixels = m.c;
    for (int64_t row = 0; row < count; row += m.rows) {
      m.rows = static_cast<int>(count - row < kMaxRows ? count - row : kMaxRows);
      MultiplyVnni(m);
      m.a = static_cast<const char*>(m.a) + m.rows * m.a_stride;
      m.c += m.rows * m.c_stride;
      m.next = m.next != nullptr && ++fetched < m.panels ? static_cast<const char*>(m.next) + m.b_stride : nullptr;
    }
    Finish(stage, to, of_pixels, m.c_stride, static_cast<int>(count));
    to.output = static_cast<uint8_t*>(to.output) + count * to.pixel_stride;
    if (to.residual != nullptr) to.residual += count * to.residual_pixel_stride;
  }
}

struct FewLanes {
  using Vector = __m512i;
  static constexpr int kDwords = 16;
  static inline Vector Zero() { return _mm512_setzero_si512(); }
  static inline Vector Load(const char* p) { return _mm512_loadu_si512(p); }
  static inline Vector LoadFirst(const char* p, int n) {
    return _mm512_maskz_loadu_epi8((uint64_t{1} << (n * kDwordBytes)) - 1, p);
  }
  static inline Vector Add(Vector sum, Vector x, Vector weights) { return _mm512_dpbusd_epi32(sum, x, weights); }
  static inline __m128i Sums(const Vector* v) {
    const auto halves = [](Vector w) {
      return _mm256_add_epi32(_mm512_castsi512_si256(w), _mm512_extracti64x4_epi64(w, 1));
    };
    const __m256i pairs =
        _mm256_hadd_epi32(_mm256_hadd_epi32(halves(v[0]), halves(v[1])), _mm256_hadd_epi32(halves(v[2]), halves(v[3])));
    return _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
  }
};

// As many rows as registers hold the sums of, beside the weights and a dword.
void MultiplyCodes(const Multiply& m, const OutputStage& stage, const Destination& to) {
  if (stage.function != nullptr) return MultiplyActivated(m, stage, to);
  switch (m.panels) {
    case 1: return MultiplyLine<1>(m, stage, to, std::make_integer_sequence<int, 14>());
    case 2: return MultiplyLine<2>(m, stage, to, std::make_integer_sequence<int, 12>());
    case 3: return MultiplyLine<3>(m, stage, to, std::make_integer_sequence<int, 8>());
    default: return MultiplyLine<4>(m, stage, to, std::make_integer_sequence<int, 6>());
  }
}

}  // namespace

// Four panels of 512 dwords take 128 KB. From the second-level cache products are as fast as from the first, as long as
// the weights that come next are fetched there, and sums stay in registers longer.
Loops GetLoops() {
  return {/*lanes=*/16,
          /*element_bytes=*/1,
          /*scattered_tiles=*/0.75,
          /*max_rows=*/kMaxRows,
          /*max_panels=*/4,
          /*chunk_depth=*/512,
          /*load=*/LoadBytes,
          /*multiply=*/MultiplyVnni,
          /*multiply_few=*/nullptr,
          /*finish=*/Finish,
          /*group=*/nullptr,
          /*multiply_codes=*/MultiplyCodes};
}

Loops GetFewLoops() {
  Loops loops = GetLoops();
  loops.scattered_tiles = 0;
  loops.max_rows = 8 * kMaxRows;
  loops.max_panels = 1;
  loops.chunk_depth = 1 << 30;
  loops.multiply_few = MultiplyFew<FewLanes>;
  loops.finish = FinishFew<FinishPanels>;
  loops.multiply_codes = nullptr;
  return loops;
}

}  // namespace fuselage::int8::conv2d::direct::FUSELAGE_AVX512_VNNI
