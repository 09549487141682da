#include "kernels/core/amx.h"
#include "kernels/int8/attention/attention.h"

namespace fuselage::int8::attention {
namespace {

namespace tiles = kernels::FUSELAGE_AMX;

using kernels::kTileRowBytes;
using kernels::kTileRows;

// Where sums go that the tiles still hold.
struct Pending {
  int32_t* sums;
  int64_t stride;
  int tiles, panels;
};

template <typename Tile>
inline __attribute__((always_inline)) void Store(Tile i, const Pending& pending) {
  if (i >= pending.tiles * pending.panels) return;
  const int tile = i / pending.panels, panel = i % pending.panels;
  tiles::StoreTile<Tile::value>(pending.sums + tile * kTileRows * pending.stride + panel * kTileRows,
                                pending.stride * static_cast<int64_t>(sizeof(int32_t)));
}

}  // namespace

// Two tiles by two panels at a time.
void FUSELAGE_AMX::Multiply(const TileSums& p) {
  kernels::TileProduct product = {};
  product.a_row_bytes = p.row_bytes;
  product.offsets = p.offsets;
  product.steps = p.steps;
  product.b_panel_bytes = p.panel_bytes;
  product.signed_a = p.is_signed;
  Pending pending = {};
  tiles::ConfigureTiles();
  for (int64_t row = 0; row < p.rows; row += 2 * kTileRows) {
    product.tiles = p.rows - row > kTileRows ? 2 : 1;
    for (int t = 0; t < product.tiles; ++t) product.a[t] = p.a + (row + t * kTileRows) * p.row_bytes;
    for (int64_t panel = 0; panel < p.panels; panel += 2) {
      product.panels = p.panels - panel > 1 ? 2 : 1;
      product.b = p.b + panel * product.b_panel_bytes;
      tiles::MultiplyTiles(
          product, [&](auto tile) { Store(tile, pending); }, [] {});
      pending = {p.sums + row * p.stride + panel * kTileRows, p.stride, product.tiles, product.panels};
    }
  }
  tiles::ForTiles<0, kernels::kMaxTileSums>([&](auto tile) { Store(tile, pending); });
  tiles::ReleaseTiles();
}

}  // namespace fuselage::int8::attention
