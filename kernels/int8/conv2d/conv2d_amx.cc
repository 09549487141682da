// The tiles of AMX: TDPBUSD adds 16 x 64 codes times 64 x 16 weights to 16 x 16 sums, exactly, and while it does the
// vector units turn the sums of the product before into codes.
#include "kernels/core/amx.h"
#include "kernels/int8/conv2d/primitives.h"

namespace fuselage::int8::conv2d {
namespace {

namespace core = kernels::FUSELAGE_AVX512_VNNI;
namespace tiles = kernels::FUSELAGE_AMX;

using kernels::kTileSums;
using kernels::TileProduct;

enum class OutputKind { kCodes, kPlainCodes, kFloat };

// The next four pixels of one panel to finish, and how many are left after them.
struct Cursor {
  int panel, tile, unit, left;
};

// The constants of one panel; stores of codes may alias what OutputStage points to.
struct PanelConstants {
  __m512i bias;
  __m512 multiplier, float_bias;
};

inline PanelConstants PanelConstantsOf(const OutputStage& stage, int channel) {
  return {_mm512_loadu_si512(stage.bias + channel), _mm512_loadu_ps(stage.multiplier + channel),
          stage.is_float ? _mm512_loadu_ps(stage.float_bias + channel) : _mm512_setzero_ps()};
}

struct ResidualConstants {
  __m512i zero_point;
  __m512 multiplier;
  __m128i flip;
};

// The first `count` channels of a pixel; all sixteen where kWhole.
template <bool kWhole>
inline __m128i LoadCodes(const uint8_t* from, int count) {
  if (kWhole) return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  uint8_t some[kPanel] = {};
  memcpy(some, from, count);
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(some));
}
template <bool kWhole>
inline void StoreCodes(uint8_t* to, __m128i codes, int count) {
  if (kWhole) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), codes);
  } else {
    memcpy(to, &codes, count);
  }
}
template <bool kWhole>
inline void StoreFloats(uint8_t* to, __m512 y, int count) {
  if (kWhole) {
    _mm512_storeu_ps(reinterpret_cast<float*>(to), y);
  } else {
    memcpy(to, &y, count * sizeof(float));
  }
}

inline __m512 AddResidual(const ResidualConstants& c, __m128i residual, __m512 v) {
  const __m512i r = _mm512_sub_epi32(_mm512_cvtepu8_epi32(_mm_xor_si128(residual, c.flip)), c.zero_point);
  return _mm512_fmadd_ps(_mm512_cvtepi32_ps(r), c.multiplier, v);
}

// As `y < 0 ? 0 : y`: -0 stays.
inline __m512 Relu(__m512 y) {
  const __m512 zero = _mm512_setzero_ps();
  return _mm512_mask_mov_ps(y, _mm512_cmp_ps_mask(y, zero, _CMP_LT_OQ), zero);
}

// Four times sixteen codes, those of a pixel next to each other.
template <OutputKind kKind>
inline __m512i CodesOf(const __m512* v, const core::OutputCodes& codes) {
  if (kKind == OutputKind::kCodes) return core::ToCodes(v[0], v[1], v[2], v[3], codes);
  const __m512i r01 = _mm512_packs_epi32(_mm512_cvtps_epi32(v[0]), _mm512_cvtps_epi32(v[1]));
  const __m512i r23 = _mm512_packs_epi32(_mm512_cvtps_epi32(v[2]), _mm512_cvtps_epi32(v[3]));
  return _mm512_permutexvar_epi32(codes.order, _mm512_packus_epi16(r01, r23));
}

// `units` times four pixels of one tile and panel. Pointers are at the panel's first channel.
struct Segment {
  const TilePixels* pixels;
  const ResidualPixels* residual_pixels;
  int units, channels;
  const char* sums;
  uint8_t* output;
  const uint8_t* residual;
};
template <OutputKind kKind, bool kResidual, bool kWhole>
inline void FinishSegment(const OutputStage& stage, const PanelConstants& panel, const Segment& segment) {
  const core::OutputCodes codes = core::MakeOutputCodes(stage.zero_point, stage.lo, stage.hi, stage.output_flip);
  const ResidualConstants residual = {_mm512_set1_epi32(stage.residual_zero_point),
                                      _mm512_set1_ps(stage.residual_multiplier),
                                      _mm_set1_epi8(static_cast<char>(stage.residual_flip))};
  const bool relu = stage.relu;
  const int channels = segment.channels;
  const char* const sums = segment.sums;
  uint8_t* const output = segment.output;
  const uint8_t* const residuals = segment.residual;
  const ResidualPixels* residual_pixels = segment.residual_pixels;
  const TilePixels* const end = segment.pixels + segment.units;
  for (const TilePixels* pixels = segment.pixels; pixels != end; ++pixels) {
    __m512 v[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const __m512i sum = _mm512_loadu_si512(sums + pixels->sums[i]);
      const __m512 a = _mm512_cvtepi32_ps(_mm512_add_epi32(sum, panel.bias));
      if (kKind == OutputKind::kFloat) {
        const __m512 y = _mm512_fmadd_ps(a, panel.multiplier, panel.float_bias);
        StoreFloats<kWhole>(output + pixels->output[i], relu ? Relu(y) : y, channels);
      } else {
        v[i] = _mm512_mul_ps(a, panel.multiplier);
        if (kResidual) {
          v[i] = AddResidual(residual, LoadCodes<kWhole>(residuals + residual_pixels->offset[i], channels), v[i]);
        }
      }
    }
    if (kResidual) ++residual_pixels;
    if (kKind == OutputKind::kFloat) continue;
    const __m512i q = CodesOf<kKind>(v, codes);
    StoreCodes<kWhole>(output + pixels->output[0], _mm512_castsi512_si128(q), channels);
    StoreCodes<kWhole>(output + pixels->output[1], _mm512_extracti32x4_epi32(q, 1), channels);
    StoreCodes<kWhole>(output + pixels->output[2], _mm512_extracti32x4_epi32(q, 2), channels);
    StoreCodes<kWhole>(output + pixels->output[3], _mm512_extracti32x4_epi32(q, 3), channels);
  }
}

// At most `units` times four pixels, from the cursor on.
template <OutputKind kKind, bool kResidual>
__attribute__((noinline)) void FinishUnits(const OutputStage& stage, const TileResults& results, Cursor& cursor,
                                           int units) {
  constexpr int64_t kOutputBytes = kKind == OutputKind::kFloat ? 4 : 1;
  for (units = units < cursor.left ? units : cursor.left; units > 0;) {
    const TileResults::Tile& tile = results.tiles[cursor.tile];
    const int first = cursor.panel * kPanel, left = tile.count - cursor.unit;
    Segment segment;
    segment.pixels = tile.pixels + cursor.unit;
    segment.residual_pixels = kResidual ? tile.residual_pixels + cursor.unit : nullptr;
    segment.units = units < left ? units : left;
    segment.channels = results.channels - first;
    segment.sums = reinterpret_cast<const char*>(results.c + (cursor.tile * results.panels + cursor.panel) * kTileSums);
    segment.output = tile.output + first * kOutputBytes;
    segment.residual = kResidual ? tile.residual + first : nullptr;
    units -= segment.units;
    cursor.left -= segment.units;
    cursor.unit += segment.units;
    const PanelConstants panel = PanelConstantsOf(stage, results.channel + first);
    if (segment.channels >= kPanel) {
      FinishSegment<kKind, kResidual, true>(stage, panel, segment);
    } else {
      FinishSegment<kKind, kResidual, false>(stage, panel, segment);
    }
    if (cursor.unit < tile.count) continue;
    cursor.unit = 0;
    if (++cursor.tile < results.tile_count) continue;
    cursor.tile = 0;
    ++cursor.panel;
  }
}

using FinishFunction = void(const OutputStage&, const TileResults&, Cursor&, int);

FinishFunction* FinishFunctionOf(const OutputStage& stage) {
  if (stage.is_float) return FinishUnits<OutputKind::kFloat, false>;
  if (stage.plain) {
    return stage.has_residual ? FinishUnits<OutputKind::kPlainCodes, true>
                              : FinishUnits<OutputKind::kPlainCodes, false>;
  }
  return stage.has_residual ? FinishUnits<OutputKind::kCodes, true> : FinishUnits<OutputKind::kCodes, false>;
}

void Run(const OutputStage& stage, const TileProduct* product, const TileResults* results) {
  FinishFunction* const finish = FinishFunctionOf(stage);
  Cursor cursor = {0, 0, 0, 0};
  if (results != nullptr) {
    for (int t = 0; t < results->tile_count; ++t) cursor.left += results->tiles[t].count;
    cursor.left *= results->panels;
  }
  if (product != nullptr) {
    // Not before the second step: the sums have only just been stored, and what waits for them would keep the products
    // that come next out of the scheduler.
    const int64_t steps = product->steps > 1 ? product->steps - 1 : 1;
    const int units = static_cast<int>((cursor.left + steps - 1) / steps);
    bool stored = product->steps == 1;
    tiles::MultiplyTiles(*product, [&] {
      if (stored && cursor.left > 0) finish(stage, *results, cursor, units);
      stored = true;
    });
  }
  if (cursor.left > 0) finish(stage, *results, cursor, cursor.left);
}

constexpr TiledPrimitives kTiled = {/*begin=*/tiles::ConfigureTiles, /*end=*/tiles::ReleaseTiles, /*run=*/Run};

}  // namespace

#ifdef FUSELAGE_EMULATE_AVX512
const TiledPrimitives& TiledAmxEmulated() { return kTiled; }
#else
const TiledPrimitives& TiledAmx() { return kTiled; }
#endif

}  // namespace fuselage::int8::conv2d
