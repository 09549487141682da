// The inner loops of tiled.cc, by instruction set.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_TILED_LOOPS_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_TILED_LOOPS_H_

#include <stdint.h>

#include "kernels/core/tiles.h"
#include "kernels/core/variant.h"
#include "kernels/int8/conv2d/core/loops.h"

namespace fuselage::int8::conv2d::tiled {

// Four pixels of a tile of sums that exist; the last one repeats where there are fewer.
struct TilePixels {
  uint16_t sums[4];   // Bytes from the tile's first.
  int32_t output[4];  // Bytes from the image's first.
};
struct ResidualPixels {
  int32_t offset[4];
};

// Where the sums of a TileProduct go. Pointers are at the first channel of its first panel.
struct TileResults {
  struct Tile {
    const TilePixels* pixels;
    const ResidualPixels* residual_pixels;
    int count;  // Of both.
    uint8_t* output;
    const uint8_t* residual;
  };
  Tile tiles[kernels::kMaxTileSums];
  const int32_t* c;
  int tile_count, panels;
  int channel;   // The first, as an index into OutputStage's arrays.
  int channels;  // How many of the panels' channels exist.
};

struct Loops {
  // Around a thread's calls of run.
  void (*begin)();
  void (*end)();
  // The product, and the results of an earlier one at the same time; either may be null.
  void (*run)(const OutputStage&, const kernels::TileProduct*, const TileResults*);
};

using GetLoopsFunction = Loops();
FUSELAGE_VARIANTS(GetLoopsFunction, GetLoops)

}  // namespace fuselage::int8::conv2d::tiled

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_TILED_LOOPS_H_
