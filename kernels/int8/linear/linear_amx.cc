// Blocks of two tiles of rows by two of channels (one by four, where one is left), all of K in the tiles. The sums of a
// block are stored, and its results computed, during the next one's products.
#include <cstring>

#include "kernels/core/activate_avx512.h"
#include "kernels/core/amx.h"
#include "kernels/int8/linear/linear.h"

namespace fuselage::int8::linear {
namespace {

namespace core = kernels::FUSELAGE_AVX512_VNNI;
namespace tiles = kernels::FUSELAGE_AMX;

using kernels::kMaxTileSums;
using kernels::kTileBytes;
using kernels::kTileRowBytes;
using kernels::kTileRows;
using kernels::kTileSums;

constexpr int64_t kUnitRows = 4;  // Rows of a tile whose results are computed at a time.

// Sums whose results are to be computed; `units` of them are.
struct Block {
  const int32_t* sums;  // [tiles][panels][16][16]
  int64_t row, rows, channel, channels;
  int tiles, panels;
  int units;

  int all_units() const { return tiles * panels * static_cast<int>(kTileRows / kUnitRows); }
};

// The next four rows of one panel.
inline void FinishUnit(const Params& p, const core::OutputCodes& codes, Block& block, void* y) {
  const int unit = block.units++;
  const int64_t first = unit % 4 * kUnitRows, tile = unit / 4 / block.panels, panel = unit / 4 % block.panels;
  const int64_t row = tile * kTileRows + first, n = panel * kTileRows;
  const int64_t rows = block.rows - row < kUnitRows ? block.rows - row : kUnitRows;
  const int64_t count = block.channels - n < kTileRows ? block.channels - n : kTileRows;
  const int32_t* sums = block.sums + (tile * block.panels + panel) * kTileSums + first * kTileRows;
  const __m512i addend = _mm512_loadu_si512(p.addend + block.channel + n);
  const __m512 multiplier = _mm512_loadu_ps(p.multiplier + block.channel + n);
  int64_t to = (block.row + row) * p.channels + block.channel + n;
  __m512 v[kUnitRows];
#pragma GCC unroll 4
  for (int i = 0; i < kUnitRows; ++i) {
    const bool adds = p.row_addend != nullptr && i < rows;
    const __m512i row_addend = _mm512_set1_epi32(adds ? p.row_addend[block.row + row + i] : 0);
    const __m512i sum = _mm512_add_epi32(_mm512_loadu_si512(sums + i * kTileRows), addend);
    v[i] = _mm512_cvtepi32_ps(_mm512_add_epi32(sum, row_addend));
    if (!p.float_output) v[i] = _mm512_mul_ps(v[i], multiplier);
  }
  if (p.float_output) {
    const __m512 bias = _mm512_loadu_ps(p.float_bias + block.channel + n);
    for (int64_t i = 0; i < rows; ++i, to += p.channels) {
      const float row_multiplier = p.row_multiplier == nullptr ? 1.0f : p.row_multiplier[block.row + row + i];
      __m512 result = _mm512_fmadd_ps(v[i], _mm512_mul_ps(multiplier, _mm512_set1_ps(row_multiplier)), bias);
      if (p.relu) result = _mm512_max_ps(result, _mm512_setzero_ps());
      if (p.function != nullptr) core::ActivateVectors<1>(*p.function, &result);
      std::memcpy(static_cast<float*>(y) + to, &result, count * sizeof(float));
    }
    return;
  }
  if (p.function != nullptr) {
    core::ActivateVectors<4>(*p.function, v);
#pragma GCC unroll 4
    for (__m512& value : v) value = _mm512_mul_ps(value, _mm512_set1_ps(p.function_multiplier));
  }
  const __m512i q = core::ToCodes(v[0], v[1], v[2], v[3], codes);
  uint8_t bytes[kTileBytes / kTileRows];
  _mm512_storeu_si512(bytes, q);
  for (int64_t i = 0; i < rows; ++i, to += p.channels) {
    uint8_t* out = static_cast<uint8_t*>(y) + to;
    if (count == kTileRows) {
      std::memcpy(out, bytes + i * kTileRows, kTileRows);
    } else {
      std::memcpy(out, bytes + i * kTileRows, count);
    }
  }
}

}  // namespace

void FUSELAGE_AMX::Run(const Params& p, const void* x, void* y, const Range& range) {
  const core::OutputCodes codes = core::MakeOutputCodes(p.zero_point, p.lo, p.hi, p.flip);
  alignas(64) int32_t sums[kMaxTileSums * kTileSums];
  Block pending = {};
  const int64_t rows = range.row_end - range.row_begin, channels = range.channel_end - range.channel_begin;
  const int64_t row_tiles = (rows + kTileRows - 1) / kTileRows, panels = (channels + kTileRows - 1) / kTileRows;
  tiles::ConfigureTiles();
  for (int64_t tile = 0; tile < row_tiles; tile += 2) {
    const int block_tiles = row_tiles - tile < 2 ? 1 : 2, most_panels = kMaxTileSums / block_tiles;
    for (int64_t panel = 0; panel < panels; panel += most_panels) {
      const int64_t row = tile * kTileRows, channel = panel * kTileRows;
      Block block = {};
      block.sums = sums;
      block.row = range.row_begin + row;
      block.rows = rows - row;
      block.channel = range.channel_begin + channel;
      block.channels = channels - channel;
      block.tiles = block_tiles;
      block.panels = static_cast<int>(panels - panel < most_panels ? panels - panel : most_panels);
      kernels::TileProduct product = {};
      for (int t = 0; t < block_tiles; ++t) {
        product.a[t] = static_cast<const uint8_t*>(x) + (block.row + t * kTileRows) * p.depth;
      }
      product.a_row_bytes = kTileRowBytes;
      product.offsets = p.step_offsets;
      product.steps = p.depth / kTileRowBytes;
      product.b = p.weight + block.channel * p.depth;
      product.b_panel_bytes = kTileRows * p.depth;
      product.tiles = block.tiles;
      product.panels = block.panels;
      const int left = pending.all_units() - pending.units;
      const int at_once = product.steps == 0 ? 0 : static_cast<int>((left + product.steps - 1) / product.steps);
      const auto store = [&] {
        if (pending.tiles > 0) tiles::StoreSums(sums, pending.tiles * pending.panels);
      };
      tiles::MultiplyTiles(product, store, [&] {
        for (int i = 0; i < at_once && pending.units < pending.all_units(); ++i) FinishUnit(p, codes, pending, y);
      });
      while (pending.units < pending.all_units()) FinishUnit(p, codes, pending, y);
      pending = block;
    }
  }
  if (pending.tiles > 0) tiles::StoreSums(sums, pending.tiles * pending.panels);
  tiles::ReleaseTiles();
  while (pending.units < pending.all_units()) FinishUnit(p, codes, pending, y);
}

}  // namespace fuselage::int8::linear
