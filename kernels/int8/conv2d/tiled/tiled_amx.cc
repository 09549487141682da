// The tiles of AMX: TDPBUSD adds 16 x 64 codes times 64 x 16 weights to 16 x 16 sums, exactly, and while it does the
// vector units turn the sums of the product before into codes.
#include "kernels/core/amx.h"
#include "kernels/int8/conv2d/core/output_avx512.h"
#include "kernels/int8/conv2d/tiled/loops.h"

namespace fuselage::int8::conv2d::tiled::FUSELAGE_AMX {
namespace {

namespace tiles = kernels::FUSELAGE_AMX;

using kernels::kTileBytes;
using kernels::kTileRowBytes;
using kernels::kTileRows;
using kernels::kTileSums;
using kernels::TileProduct;

// Of a panel: the sums of a pixel, and the largest of a window.
inline __m512i SumOf(const TilePixel& pixel, const char* panel) { return _mm512_loadu_si512(panel + pixel.sums); }
inline __m512i SumOf(const TileWindow& window, const char* panel) {
  __m512i largest = _mm512_loadu_si512(panel + window.sums[0]);
#pragma GCC unroll 4
  for (int i = 1; i < kMostWindowPixels; ++i) {
    largest = _mm512_max_epi32(largest, _mm512_loadu_si512(panel + window.sums[i]));
  }
  return largest;
}

// Turns sums into codes, a vector at a time: those of 4 / kGroup pixels, of kGroup neighbouring panels each. Where
// these are more than one, all their channels exist. Pixel: or TileWindow.
template <typename Form, int kGroup, typename Pixel = TilePixel>
class Finisher {
 public:
  Finisher(const OutputStage& stage, const TileResults& results)
      : stage_(stage), results_(results), constants_(StageConstantsOf(stage)) {
    EnterPanel();
    EnterTile();
  }

  inline __attribute__((always_inline)) void Next() {
    __m512 v[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const int pixel = i / kGroup, p = i % kGroup;
      const __m512i sum = SumOf(pixels_[pixel], sums_ + p * kTileBytes);
      if (Form::kind == OutputKind::kFloat) {
        StoreFloat(panels_[p], sum, output_ + pixels_[pixel].output);
        continue;
      }
      v[i] = kPools ? ScaledOf(panels_[p], sum) : ValuesOf(panels_[p], sum);
      if (!Form::residual) continue;
      v[i] = AddResidual<Form>(constants_, Codes(residual_ + residual_offsets_[pixel] + p * kPanel), v[i]);
    }
    if (Form::kind != OutputKind::kFloat) Store(CodesOf<Form, kGroup>(constants_, panels_, v));
    pixels_ += kPixels;
    if (Form::residual) residual_offsets_ += kPixels;
    if (__builtin_expect(pixels_ == end_, 0)) Advance();
  }

 private:
  static constexpr bool kPools = std::is_same_v<Pixel, TileWindow>;
  static constexpr int kPixels = 4 / kGroup, kOutputBytes = Form::kind == OutputKind::kFloat ? 4 : 1;

  bool IsWhole() const { return kGroup > 1 || channels_ >= kPanel; }

  __m128i Codes(const uint8_t* from) const {
    return IsWhole() ? LoadCodes<true>(from, kPanel) : LoadCodes<false>(from, channels_);
  }
  void StoreFloat(const PanelConstants& panel, __m512i sum, uint8_t* to) const {
    IsWhole() ? StoreFloats<true>(constants_, panel, sum, kPanel, to)
              : StoreFloats<false>(constants_, panel, sum, channels_, to);
  }
  void Store(__m512i codes) const {
    const auto to = [this](int pixel) { return output_ + pixels_[pixel].output; };
    if constexpr (kGroup == 4) {
      _mm512_storeu_si512(to(0), codes);
    } else if constexpr (kGroup == 2) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to(0)), _mm512_castsi512_si256(codes));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to(1)), _mm512_extracti64x4_epi64(codes, 1));
    } else if (IsWhole()) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to(0)), _mm512_castsi512_si128(codes));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to(1)), _mm512_extracti32x4_epi32(codes, 1));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to(2)), _mm512_extracti32x4_epi32(codes, 2));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to(3)), _mm512_extracti32x4_epi32(codes, 3));
    } else {
      uint8_t all[4][kPanel];
      memcpy(all, &codes, sizeof(all));
      for (int i = 0; i < 4; ++i) memcpy(to(i), all[i], channels_);
    }
  }

  // To the next tile, and from the last one to the next panels.
  void Advance() {
    if (++tile_ == results_.tile_count) {
      if (kPools) KeepLastRows();
      tile_ = 0;
      panel_ += kGroup;
      if (panel_ >= results_.panels) return;
      EnterPanel();
    }
    EnterTile();
  }
  // For the first tile of the next product.
  void KeepLastRows() {
    constexpr int kRows = kMostWindowPixels - 1, kFirst = (kTileRows - kRows) * kTileRowBytes;
    char* const to = reinterpret_cast<char*>(results_.sums) - kGroup * kTileBytes;
#pragma GCC unroll 4
    for (int p = 0; p < kGroup; ++p) {
#pragma GCC unroll 4
      for (int at = p * kTileBytes + kFirst; at < (p + 1) * kTileBytes; at += kTileRowBytes) {
        _mm512_storeu_si512(to + at, _mm512_loadu_si512(sums_ + at));
      }
    }
  }
  void EnterPanel() {
    channels_ = results_.channels - panel_ * kPanel;
#pragma GCC unroll 4
    for (int p = 0; p < kGroup; ++p) panels_[p] = PanelConstantsOf(stage_, results_.channel + (panel_ + p) * kPanel);
  }
  void EnterTile() {
    const TileResults::Tile& tile = results_.tiles[tile_];
    if constexpr (kPools) {
      pixels_ = tile.windows;
    } else {
      pixels_ = tile.pixels;
    }
    end_ = pixels_ + tile.count;
    sums_ = reinterpret_cast<const char*>(results_.sums + (tile_ * results_.panels + panel_) * kTileSums);
    output_ = tile.output + panel_ * kPanel * kOutputBytes;
    if (!Form::residual) return;
    residual_ = tile.residual + panel_ * kPanel;
    residual_offsets_ = tile.residual_offsets;
  }

  const OutputStage& stage_;
  const TileResults& results_;
  const StageConstants constants_;
  PanelConstants panels_[kGroup];
  int panel_ = 0, tile_ = 0, channels_;
  const Pixel *pixels_, *end_;
  const char* sums_;
  uint8_t* output_;
  const uint8_t* residual_;
  const int32_t* residual_offsets_;
};

int VectorsOf(const TileResults& results) {
  int pixels = 0;
  for (int t = 0; t < results.tile_count; ++t) pixels += results.tiles[t].count;
  return pixels * results.panels / 4;
}

// A product and results of its shape.
template <int kTiles, int kPanels, bool kStreams, typename Form, typename Pixel = TilePixel>
__attribute__((noinline)) void RunTogether(const OutputStage& stage, const TileProduct& product,
                                           const TileResults& results) {
  Finisher<Form, kPanels, Pixel> finisher(stage, results);
  tiles::MultiplyAndFinish<kTiles, kPanels>(
      product, tiles::UnsignedOperands<false, kStreams>(), results.sums, kTiles * kPanels,
      VectorsOf(results), [&]() __attribute__((always_inline)) { finisher.Next(); });
}

// Of any shape; no product: nullptr.
template <typename Form, int kGroup, typename Pixel = TilePixel>
void RunAny(const OutputStage& stage, const TileProduct* product, const TileResults& results) {
  Finisher<Form, kGroup, Pixel> finisher(stage, results);
  const auto finish = [](void* of, int vectors) {
    for (; vectors > 0; --vectors) static_cast<Finisher<Form, kGroup, Pixel>*>(of)->Next();
  };
  tiles::MultiplyAndFinish(product, results.sums, results.tile_count * results.panels, VectorsOf(results), finish,
                           &finisher);
}

// The maxima of windows: tiled.cc's PoolsRows says of what.
void RunPooled(const OutputStage& stage, const TileProduct* product, const TileResults& results) {
  if (product != nullptr && !product->signed_a && stage.plain) {
    return RunTogether<1, 4, false, OutputForm<OutputKind::kPlainCodes, false>, TileWindow>(stage, *product, results);
  }
  RunAny<OutputForm<OutputKind::kCodes, false>, 4, TileWindow>(stage, product, results);
}

template <typename Form>
void RunForm(const OutputStage& stage, const TileProduct* product, const TileResults& results) {
  // All panels at once, where all their channels exist and they divide the four vectors.
  if (Form::kind != OutputKind::kFloat && results.channels == results.panels * kPanel && results.panels != 3) {
    if constexpr (Form::kind == OutputKind::kCodes || Form::kind == OutputKind::kPlainCodes) {
      if (product != nullptr && !product->signed_a && product->tiles == results.tile_count &&
          product->panels == results.panels) {
        const bool streams = product->b_streams;
        if (product->panels == 4 && !streams) return RunTogether<1, 4, false, Form>(stage, *product, results);
        if (product->panels == 2 && product->tiles == 2) {
          return streams ? RunTogether<2, 2, true, Form>(stage, *product, results)
                         : RunTogether<2, 2, false, Form>(stage, *product, results);
        }
      }
    }
    if (results.panels == 4) return RunAny<Form, 4>(stage, product, results);
    if (results.panels == 2) return RunAny<Form, 2>(stage, product, results);
  }
  RunAny<Form, 1>(stage, product, results);
}

void Run(const OutputStage& stage, const TileProduct* product, const TileResults* results) {
  if (results == nullptr) return tiles::MultiplyAndFinish(product, nullptr, 0, 0, nullptr, nullptr);
  if (results->tiles[0].windows != nullptr) return RunPooled(stage, product, *results);
  WithOutputForm(stage, [&](auto form) { RunForm<decltype(form)>(stage, product, *results); });
}

}  // namespace

Loops GetLoops() { return {/*begin=*/tiles::ConfigureTiles, /*end=*/tiles::ReleaseTiles, /*run=*/Run}; }

}  // namespace fuselage::int8::conv2d::tiled::FUSELAGE_AMX
