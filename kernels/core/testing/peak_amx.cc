#include "kernels/core/amx.h"
#include "kernels/core/testing/peak.h"

namespace fuselage::kernels {

int64_t FUSELAGE_AMX::MultiplyAtPeak(int64_t repetitions) {
  constexpr int kSteps = 8;
  alignas(64) uint8_t a[2][kTileBytes] = {};
  alignas(64) int8_t b[2][kSteps][kTileBytes] = {};
  const int64_t offsets[kSteps] = {};
  TileProduct product = {};
  product.a[0] = a[0], product.a[1] = a[1];
  product.a_row_bytes = kTileRowBytes;
  product.offsets = offsets;
  product.steps = kSteps;
  product.b = b[0][0];
  product.b_panel_bytes = kSteps * kTileBytes;
  product.tiles = product.panels = 2;
  ConfigureTiles();
  const auto nothing = [](auto...) {};
  for (int64_t n = 0; n < repetitions; ++n)
    MultiplyTiles<2, 2>(product, UnsignedOperands<false, false>(), nothing, nothing);
  ReleaseTiles();
  return repetitions * kSteps * kMaxTileSums * kTileBytes * kTileRows;
}

}  // namespace fuselage::kernels
