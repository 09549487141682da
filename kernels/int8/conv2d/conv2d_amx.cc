// The tiles of AMX: TDPBUSD adds 16 x 64 codes times 64 x 16 weights to 16 x 16 sums, exactly, and while it does the
// vector units turn the sums of the product before into codes.
#include "kernels/core/activate_avx512.h"
#include "kernels/core/amx.h"
#include "kernels/int8/conv2d/primitives.h"

namespace fuselage::int8::conv2d {
namespace {

namespace core = kernels::FUSELAGE_AVX512_VNNI;
namespace tiles = kernels::FUSELAGE_AMX;

using kernels::kTileBytes;
using kernels::kTileSums;
using kernels::TileProduct;

enum class OutputKind { kCodes, kPlainCodes, kActivatedCodes, kFloat };

// The next four pixels of `group` panels to finish, and how many are left with them.
struct Cursor {
  int group;
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
template <bool kWhole>
inline void StoreFloats(uint8_t* to, __m512 y, int count) {
  if (kWhole) {
    _mm512_storeu_ps(reinterpret_cast<float*>(to), y);
  } else {
    memcpy(to, &y, count * sizeof(float));
  }
}

template <OutputKind kKind>
inline __m512 AddResidual(const ResidualConstants& c, __m128i residual, __m512 v) {
  __m512i r;
  if (kKind == OutputKind::kPlainCodes) {
    r = _mm512_cvtepu8_epi32(residual);
  } else {
    r = _mm512_sub_epi32(_mm512_cvtepu8_epi32(_mm_xor_si128(residual, c.flip)), c.zero_point);
  }
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
  if (kKind != OutputKind::kPlainCodes) return core::ToCodes(v[0], v[1], v[2], v[3], codes);
  const __m512i r01 = _mm512_packs_epi32(_mm512_cvtps_epi32(v[0]), _mm512_cvtps_epi32(v[1]));
  const __m512i r23 = _mm512_packs_epi32(_mm512_cvtps_epi32(v[2]), _mm512_cvtps_epi32(v[3]));
  return _mm512_permutexvar_epi32(codes.order, _mm512_packus_epi16(r01, r23));
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
template <OutputKind kKind, bool kResidual, int kGroup, bool kWhole>
inline void FinishSegment(const OutputStage& stage, const Segment& segment) {
  constexpr int kPixels = 4 / kGroup;
  const core::OutputCodes codes = core::MakeOutputCodes(stage.zero_point, stage.lo, stage.hi, stage.output_flip);
  const ResidualConstants residual = {_mm512_set1_epi32(stage.residual_zero_point),
                                      _mm512_set1_ps(stage.residual_multiplier),
                                      _mm_set1_epi8(static_cast<char>(stage.residual_flip))};
  PanelConstants panels[kGroup];
#pragma GCC unroll 4
  for (int p = 0; p < kGroup; ++p) panels[p] = PanelConstantsOf(stage, segment.channel + p * kPanel);
  const bool relu = stage.relu;
  const ElementwiseInstruction* const function = stage.function;
  const float function_multiplier = stage.function_multiplier;
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
        const __m512 a = _mm512_cvtepi32_ps(_mm512_add_epi32(sum, panels[p].bias));
        if (kKind == OutputKind::kFloat) {
          __m512 y = _mm512_fmadd_ps(a, panels[p].multiplier, panels[p].float_bias);
          if (function != nullptr) core::ActivateVectors<1>(*function, function_multiplier, &y);
          StoreFloats<kWhole>(output + pixels->output[pixel], relu ? Relu(y) : y, channels);
          continue;
        }
        v[i] = _mm512_mul_ps(a, panels[p].multiplier);
        if (!kResidual) continue;
        const uint8_t* r = residuals + residual_pixels->offset[pixel] + p * kPanel;
        v[i] = AddResidual<kKind>(residual, LoadCodes<kWhole>(r, channels), v[i]);
      }
      if (kKind == OutputKind::kFloat) continue;
      if (kKind == OutputKind::kActivatedCodes) core::ActivateVectors<4>(*function, function_multiplier, v);
      StoreCodes<kGroup, kWhole>(output, pixels->output + first, CodesOf<kKind>(v, codes), channels);
    }
    if (kResidual) ++residual_pixels;
  }
}

template <OutputKind kKind, bool kResidual>
inline void FinishSegment(const OutputStage& stage, int group, const Segment& segment) {
  if constexpr (kKind != OutputKind::kFloat) {
    if (group == 4) return FinishSegment<kKind, kResidual, 4, true>(stage, segment);
    if (group == 2) return FinishSegment<kKind, kResidual, 2, true>(stage, segment);
  }
  if (segment.channels >= kPanel) {
    FinishSegment<kKind, kResidual, 1, true>(stage, segment);
  } else {
    FinishSegment<kKind, kResidual, 1, false>(stage, segment);
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
    segment.channel = results.channel + first;
    segment.channels = results.channels - first;
    segment.sums = reinterpret_cast<const char*>(results.c + (cursor.tile * results.panels + cursor.panel) * kTileSums);
    segment.output = tile.output + first * kOutputBytes;
    segment.residual = kResidual ? tile.residual + first : nullptr;
    units -= segment.units;
    cursor.left -= segment.units;
    cursor.unit += segment.units;
    FinishSegment<kKind, kResidual>(stage, cursor.group, segment);
    if (cursor.unit < tile.count) continue;
    cursor.unit = 0;
    if (++cursor.tile < results.tile_count) continue;
    cursor.tile = 0;
    cursor.panel += cursor.group;
  }
}

using FinishFunction = void(const OutputStage&, const TileResults&, Cursor&, int);

FinishFunction* FinishFunctionOf(const OutputStage& stage) {
  if (stage.is_float) return FinishUnits<OutputKind::kFloat, false>;
  if (stage.plain) {
    return stage.has_residual ? FinishUnits<OutputKind::kPlainCodes, true>
                              : FinishUnits<OutputKind::kPlainCodes, false>;
  }
  if (stage.function != nullptr) {
    return stage.has_residual ? FinishUnits<OutputKind::kActivatedCodes, true>
                              : FinishUnits<OutputKind::kActivatedCodes, false>;
  }
  return stage.has_residual ? FinishUnits<OutputKind::kCodes, true> : FinishUnits<OutputKind::kCodes, false>;
}

void Run(const OutputStage& stage, const TileProduct* product, const TileResults* results) {
  FinishFunction* const finish = FinishFunctionOf(stage);
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
    // that come next out of the scheduler. A tile's worth at a time: a call costs as much as one.
    const int64_t steps = product->steps > 1 ? product->steps - 1 : 1;
    const int share = static_cast<int>((cursor.left + steps - 1) / steps), least = 4 / cursor.group;
    const int units = share < least ? least : share;
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
