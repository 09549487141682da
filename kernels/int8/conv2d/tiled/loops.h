// The inner loops of tiled.cc, by instruction set.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_TILED_LOOPS_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_TILED_LOOPS_H_

#include <stdint.h>

#include "kernels/core/tiles.h"
#include "kernels/core/variant.h"
#include "kernels/int8/conv2d/core/loops.h"

namespace fuselage::int8::conv2d::tiled {

// A pixel of a tile of sums. Lists of them are multiples of four: the last one repeats.
struct TilePixel {
  int32_t output;  // Bytes from the image's first.
  uint16_t sums;   // Bytes from the tile's first.
};

// A window of a max pool along a row: up to three pixels of the tile or of the one before it; fewer repeat.
constexpr int kMostWindowPixels = 3;
struct TileWindow {
  int32_t output;                   // Bytes from the image's first.
  int16_t sums[kMostWindowPixels];  // Bytes from the tile's first. Before it lie the last two of each panel of the tile
                                    // before.
};

// Where the sums of a TileProduct go. Pointers are at the first channel of its first panel.
struct TileResults {
  struct Tile {
    const TilePixel* pixels;
    const TileWindow* windows;  // Instead of pixels; else null. Then sums begin with the bias, and tiles follow each
                                // other along rows.
    const int32_t* residual_offsets;  // Of the same pixels.
    int count;                        // Of pixels or windows.
    uint8_t* output;
    const uint8_t* residual;
  };
  Tile tiles[kernels::kMaxTileSums];
  int32_t* sums;  // [tile_count][panels][16][16], where they are to lie meanwhile.
  int tile_count, panels;
  int channel;   // The first, as an index into OutputStage's arrays.
  int channels;  // How many of the panels' channels exist.
};

struct Loops {
  // Around a thread's calls of run.
  void (*begin)();
  void (*end)();
  // The product, whose sums stay in the tiles, and the results of the one before, whose sums are there; either may be
  // null.
  void (*run)(const OutputStage&, const kernels::TileProduct*, const TileResults*);
};

using GetLoopsFunction = Loops();
FUSELAGE_VARIANTS(GetLoopsFunction, GetLoops)

}  // namespace fuselage::int8::conv2d::tiled

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_TILED_LOOPS_H_
