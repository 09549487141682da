// How a Gemm is cut into blocks.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CUDA_TILING_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CUDA_TILING_H_

#include "absl/types/span.h"
#include "kernels/cuda/device_properties.h"

namespace fuselage::int8::conv2d::cuda {

struct Tiling {
  int tile = 0;           // In kTiles.
  int splits = 1;         // Of the inner dimension.
  bool clusters = false;  // The splits of a tile are one. Otherwise the last of them, by a ticket, adds their sums.

  friend bool operator==(const Tiling& a, const Tiling& b) {
    return a.tile == b.tile && a.splits == b.splits && a.clusters == b.clusters;
  }
};

struct GemmSize {
  int rows, columns, steps;  // Output pixels, output channels, kStep bytes of the inner dimension.
  // For a halo: kStep channels a slice, and the pixels of a patch beyond its tile's rows. 0 taps: it does not run this.
  int taps = 0, slices = 0, around = 0;
  // Of several groups, for tiles of kGroupColumns; of small ones, for those that skip what is 0 (Gemm's kDiagonal).
  bool grouped = false, diagonal = false;

  friend bool operator==(const GemmSize& a, const GemmSize& b) {
    return a.rows == b.rows && a.columns == b.columns && a.steps == b.steps && a.taps == b.taps &&
           a.slices == b.slices && a.around == b.around && a.grouped == b.grouped && a.diagonal == b.diagonal;
  }
};
// Of a halo's slice: a word has a bit for each.
constexpr int kMostTaps = 32;
// Those that a halo's tile multiplies, zeros among them.
int HaloTaps(const GemmSize& size, int tile);

// Blocks that fit a multiprocessor at once; 0: none.
int BlocksAtOnce(const GemmSize& size, const Tiling& tiling, const ::fuselage::cuda::DeviceProperties& device);
bool TileRuns(const GemmSize& size, int tile, const ::fuselage::cuda::DeviceProperties& device);
// Can the tile have so many splits, each with steps, and they be clusters?
bool TilingRuns(const GemmSize& size, const Tiling& tiling, const ::fuselage::cuda::DeviceProperties& device);

// How many of `splits` have steps, where all but the last have the same number.
constexpr int NonEmptySplits(int steps, int splits) {
  const int each = (steps + splits - 1) / splits;
  return (steps + each - 1) / each;
}

// The fastest tiling of a size on a kind of device, by measurement.
struct Tuned {
  int sm;
  GemmSize size;
  Tiling tiling;
};
absl::Span<const Tuned> TunedTilings();

// From `tuned` where it is there, otherwise the shortest by a model of the device: multiplications, waves of blocks,
// latency of a step, and what a split costs.
Tiling ChooseTiling(const GemmSize& size, const ::fuselage::cuda::DeviceProperties& device,
                    absl::Span<const Tuned> tuned);

}  // namespace fuselage::int8::conv2d::cuda

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CUDA_TILING_H_
