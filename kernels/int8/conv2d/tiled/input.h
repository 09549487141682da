// How a convolution reads a placed tensor in tiles: sixteen pixels at a constant distance, 64 bytes of each.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_TILED_INPUT_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_TILED_INPUT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/int8/conv2d/core/problem.h"
#include "kernels/core/placement/placement.h"

namespace fuselage::int8::conv2d::tiled {

struct TiledInput {
  // The sum over taps and channels goes in steps of 64 bytes. A step may hold several taps where few channels lie next
  // to each other, and bytes that no tap reads: their weights are zero.
  std::vector<int64_t> offsets;    // [steps], from an output pixel's source.
  std::vector<int64_t> positions;  // [tap][channel of a group]: 64 * step + byte.

  // Tiles run on from row to row where the rows' distance allows: what lies between two rows is computed for nothing.
  int64_t pixel_bytes;  // The distance.
  struct Tile {
    int64_t source;  // Of its first pixel, in an image.
    int first_pixel, pixels;
  };
  struct Pixel {
    int row, y, x;  // In the tile; in the output.
  };
  std::vector<Tile> tiles;  // Of an image.
  std::vector<Pixel> pixels;

  int64_t steps() const { return static_cast<int64_t>(offsets.size()); }
};

// `memory`: bytes of the tensor's memory, which may be more than it takes. Tiles end with their rows where
// `rows_apart`. nullopt: the placement has not the halo that
// it takes, does not fit the stride, or tiles would read beyond the memory.
std::optional<TiledInput> ReadInTiles(const Geometry& geometry, const kernels::PlacedTensor& input, int64_t memory,
                                      bool rows_apart = false);

// A placement that ReadInTiles takes, with as few steps and tiles as there can be; dense where that is as good.
// nullopt: with a halo or a stride so large that it is out of proportion.
std::optional<kernels::Placement> PlacementForTiles(const Geometry& geometry);

}  // namespace fuselage::int8::conv2d::tiled

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_TILED_INPUT_H_
