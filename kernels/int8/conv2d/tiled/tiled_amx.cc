// The tiles of AMX: TDPBUSD adds 16 x 64 codes times 64 x 16 weights to 16 x 16 sums, exactly, and while it does the
// vector units turn the sums of the product before into codes.
#include "kernels/core/amx.h"
#include "kernels/int8/conv2d/core/output_avx512.h"
#include "kernels/int8/conv2d/tiled/loops.h"

namespace fuselage::int8::conv2d::tiled::FUSELAGE_AMX {
namespace {

namespace tiles = kernels::FUSELAGE_AMX;

using kernels::kTileBytes;
using kernels::kTileSums;
using kernels::TileProduct;

// The next four pixels of `group` panels to finish, and how many are left with them.
struct Cursor {
  int group;
  int panel, tile, unit, left;
};

// The codes of 4 / kGroup pixels, of kGroup panels each.
template <int kGroup, bool kWhole>
inline void StoreCodes(uint8_t* to, const int32_t* offsets, __m512i codes, int channels) {
  if constexpr (!kWhole) {
    uint8_t all[4][kPanel];
    memcpy(all, &codes, sizeof(all));
    for (int i = 0; i < 4; ++i) memcpy(to + offsets[i], all[i], channels);
  } else if constexpr (kGroup == 4) {
    _mm512_storeu_si512(to + offsets[0], codes);
  } else if constexpr (kGroup == 2) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + offsets[0]), _mm512_castsi512_si256(codes));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + offsets[1]), _mm512_extracti64x4_epi64(codes, 1));
  } else {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + offsets[0]), _mm512_castsi512_si128(codes));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + offsets[1]), _mm512_extracti32x4_epi32(codes, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + offsets[2]), _mm512_extracti32x4_epi32(codes, 2));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + offsets[3]), _mm512_extracti32x4_epi32(codes, 3));
  }
}

// `units` times four pixels of one tile. Pointers are at the first panel's first channel.
struct Segment {
  const TilePixels* pixels;
  const ResidualPixels* residual_pixels;
  int units, channel, channels;
  const char* sums;
  uint8_t* output;
  const uint8_t* residual;
};

// kGroup panels: the codes of a pixel's neighbouring channels are stored at once. kWhole: all the channels exist.
template <typename Form, int kGroup, bool kWhole>
inline void FinishSegment(const OutputStage& stage, const Segment& segment) {
  constexpr int kPixels = 4 / kGroup;
  const StageConstants constants = StageConstantsOf(stage);
  PanelConstants panels[kGroup];
#pragma GCC unroll 4
  for (int p = 0; p < kGroup; ++p) panels[p] = PanelConstantsOf(stage, segment.channel + p * kPanel);
  const int channels = segment.channels;
  const char* const sums = segment.sums;
  uint8_t* const output = segment.output;
  const uint8_t* const residuals = segment.residual;
  const ResidualPixels* residual_pixels = segment.residual_pixels;
  const TilePixels* const end = segment.pixels + segment.units;
  for (const TilePixels* pixels = segment.pixels; pixels != end; ++pixels) {
#pragma GCC unroll 4
    for (int first = 0; first < 4; first += kPixels) {
      __m512 v[4];
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        const int pixel = first + i / kGroup, p = i % kGroup;
        const __m512i sum = _mm512_loadu_si512(sums + pixels->sums[pixel] + p * kTileBytes);
        if (Form::kind == OutputKind::kFloat) {
          StoreFloats<kWhole>(constants, panels[p], sum, channels, output + pixels->output[pixel]);
          continue;
        }
        v[i] = ValuesOf(panels[p], sum);
        if (!Form::residual) continue;
        const uint8_t* r = residuals + residual_pixels->offset[pixel] + p * kPanel;
        v[i] = AddResidual<Form>(constants, LoadCodes<kWhole>(r, channels), v[i]);
      }
      if (Form::kind == OutputKind::kFloat) continue;
      StoreCodes<kGroup, kWhole>(output, pixels->output + first, CodesOf<Form, kGroup>(constants, panels, v), channels);
    }
    if (Form::residual) ++residual_pixels;
  }
}

template <typename Form>
inline void FinishSegment(const OutputStage& stage, int group, const Segment& segment) {
  if constexpr (Form::kind != OutputKind::kFloat) {
    if (group == 4) return FinishSegment<Form, 4, true>(stage, segment);
    if (group == 2) return FinishSegment<Form, 2, true>(stage, segment);
  }
  if (segment.channels >= kPanel) {
    FinishSegment<Form, 1, true>(stage, segment);
  } else {
    FinishSegment<Form, 1, false>(stage, segment);
  }
}

// At most `units` times four pixels, from the cursor on.
template <typename Form>
__attribute__((noinline)) void FinishUnits(const OutputStage& stage, const TileResults& results, Cursor& cursor,
                                           int units) {
  constexpr int64_t kOutputBytes = Form::kind == OutputKind::kFloat ? 4 : 1;
  for (units = units < cursor.left ? units : cursor.left; units > 0;) {
    const TileResults::Tile& tile = results.tiles[cursor.tile];
    const int first = cursor.panel * kPanel, left = tile.count - cursor.unit;
    Segment segment;
    segment.pixels = tile.pixels + cursor.unit;
    segment.residual_pixels = Form::residual ? tile.residual_pixels + cursor.unit : nullptr;
    segment.units = units < left ? units : left;
    segment.channel = results.channel + first;
    segment.channels = results.channels - first;
    segment.sums = reinterpret_cast<const char*>(results.c + (cursor.tile * results.panels + cursor.panel) * kTileSums);
    segment.output = tile.output + first * kOutputBytes;
    segment.residual = Form::residual ? tile.residual + first : nullptr;
    units -= segment.units;
    cursor.left -= segment.units;
    cursor.unit += segment.units;
    FinishSegment<Form>(stage, cursor.group, segment);
    if (cursor.unit < tile.count) continue;
    cursor.unit = 0;
    if (++cursor.tile < results.tile_count) continue;
    cursor.tile = 0;
    cursor.panel += cursor.group;
  }
}

void Run(const OutputStage& stage, const TileProduct* product, const TileResults* results) {
  void (*finish)(const OutputStage&, const TileResults&, Cursor&, int) = nullptr;
  WithOutputForm(stage, [&](auto form) { finish = FinishUnits<decltype(form)>; });
  Cursor cursor = {1, 0, 0, 0, 0};
  if (results != nullptr) {
    // All panels at once, where all their channels exist and they divide the four pixels' vectors.
    const bool at_once = !stage.is_float && results->channels == results->panels * kPanel && results->panels != 3;
    if (at_once) cursor.group = results->panels;
    for (int t = 0; t < results->tile_count; ++t) cursor.left += results->tiles[t].count;
    cursor.left *= results->panels / cursor.group;
  }
  if (product != nullptr) {
    // Not before the second step: the sums have only just been stored, and what waits for them would keep the products
    // that come next out of the scheduler. A tile's worth at a time, of four panels one of each: a call costs as much.
    const int64_t steps = product->steps > 1 ? product->steps - 1 : 1;
    const int share = static_cast<int>((cursor.left + steps - 1) / steps);
    const int least = cursor.group == 2 ? 2 : 4;
    const int units = share < least ? least : share;
    bool stored = product->steps == 1;
    tiles::MultiplyTiles(*product, [&] {
      if (stored && cursor.left > 0) finish(stage, *results, cursor, units);
      stored = true;
    });
  }
  if (cursor.left > 0) finish(stage, *results, cursor, cursor.left);
}

}  // namespace

Loops GetLoops() { return {/*begin=*/tiles::ConfigureTiles, /*end=*/tiles::ReleaseTiles, /*run=*/Run}; }

}  // namespace fuselage::int8::conv2d::tiled::FUSELAGE_AMX
