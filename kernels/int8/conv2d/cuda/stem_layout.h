// How a Stem cuts the output, and its shared memory.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CUDA_STEM_LAYOUT_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CUDA_STEM_LAYOUT_H_

#include <cstdint>

#include "kernels/cuda/arithmetic.h"

namespace fuselage::int8::conv2d::cuda {

struct StemLayout {
  static constexpr int kTileWidth = 16, kTileChannels = 64;
  static constexpr int kTaps = 8;  // Of a row.
  static constexpr int kRowBytes = 4 * kTaps;
  FUSELAGE_HOST_DEVICE static constexpr int TileHeight(bool pooled) { return pooled ? 16 : 8; }

  // The weights of a row of taps come first. The inner dimension of mma has taps 0, 2, 4, 6, 1, 3, 5, 7: a thread's two
  // are neighbours.
  static constexpr int kWeightBytes = kTileChannels * kRowBytes;
  static constexpr int TapPlace(int tap) { return tap / 2 + tap % 2 * 4; }
  // Of a channel's 16-byte piece: ldmatrix takes eight channels at once, and meets no bank twice.
  FUSELAGE_HOST_DEVICE static constexpr int WeightPlace(int channel, int piece) {
    return channel * kRowBytes + (piece ^ (channel >> 2 & 1)) * 16;
  }

  int weight_rows;                // Of taps.
  int patch_height, patch_width;  // Input pixels, behind the weights: words of four channels, lines of whole fours.
  int step_y, step_x;  // Outputs of a tile, pooled ones where there is a pool; 0: a window is larger than it.
  int down, across;    // Tiles of an image.
  ::fuselage::cuda::Divider column_tiles, patch_fours, steps;  // By patch_width / 4 and step_x.
  bool three_in_words;  // The input is whole words of three channels a pixel, which are fetched as such.

  FUSELAGE_HOST_DEVICE int patch() const { return weight_rows * kWeightBytes; }  // Its offset.
  FUSELAGE_HOST_DEVICE int64_t bytes() const { return patch() + int64_t{4} * patch_height * patch_width; }
};

}  // namespace fuselage::int8::conv2d::cuda

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CUDA_STEM_LAYOUT_H_
