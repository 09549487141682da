// How a Stem and a PooledStem cut their output, and their shared memory.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CUDA_STEM_LAYOUT_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CUDA_STEM_LAYOUT_H_

#include <cstdint>

#include "kernels/cuda/arithmetic.h"

namespace fuselage::int8::conv2d::cuda {

// Input pixels as words of four channels, in lines of whole fours.
struct StemPatch {
  static constexpr int kBatch = 6;  // Lines whose loads a thread has under way at once.

  int height, width;
  int step, rounds;                 // The threads of a block fetch so many lines at once, in so many rounds.
  ::fuselage::cuda::Divider fours;  // By those of a line.
  bool three_in_words;              // The input is whole words, of three channels a pixel.
  int64_t bytes;                    // With room for whole batches.
};

// The inner dimension of mma has the taps of a row: 0, 2, 4, 6, 1, 3, 5, 7. A thread's two are neighbours.
struct StemTaps {
  static constexpr int kCount = 8;
  static constexpr int kBytes = 4 * kCount;
  static constexpr int Place(int tap) { return tap / 2 + tap % 2 * 4; }
};

struct StemLayout {
  static constexpr int kTileHeight = 8, kTileWidth = 16, kTileChannels = 64;

  // The weights of a row of taps come first.
  static constexpr int kWeightBytes = kTileChannels * StemTaps::kBytes;
  // Of a channel's 16-byte piece: ldmatrix takes eight channels at once, and meets no bank twice.
  FUSELAGE_HOST_DEVICE static constexpr int WeightPlace(int channel, int piece) {
    return channel * StemTaps::kBytes + (piece ^ (channel >> 2 & 1)) * 16;
  }

  int weight_rows;   // Of taps.
  StemPatch patch;   // Behind the weights.
  int down, across;  // Tiles of an image.
  ::fuselage::cuda::Divider column_tiles;

  FUSELAGE_HOST_DEVICE int weight_bytes() const { return weight_rows * kWeightBytes; }
  FUSELAGE_HOST_DEVICE int64_t bytes() const { return weight_bytes() + patch.bytes; }
};

// A block's warps lie side by side: `strips` of pixels, and groups of channels.
struct PooledStemLayout {
  static constexpr int kWarps = 4;
  static constexpr int kStripWidth = 16, kGroupChannels = 32;  // Of a warp; pixels of the convolution.
  // Of two strips, which do not overlap where windows are two wide.
  FUSELAGE_HOST_DEVICE static constexpr int PatchWidth(int stride) {
    return ((2 * kStripWidth - 1) * stride + StemTaps::kCount + 3) / 4 * 4;
  }
  // Weights of a row of taps: a thread's words are neighbours, of two fragments of sixteen channels, whose rows r are
  // channels 4 * (r % 8) + 2 * fragment + r / 8, so that a thread's four channels are neighbours too.
  static constexpr int kRowBytes = kGroupChannels * StemTaps::kBytes;
  static constexpr int WeightPlace(int channel, int tap) {
    const int place = StemTaps::Place(tap), lane = channel / 4 * 4 + place % 4;
    return (lane * 8 + channel % 4 / 2 * 4 + place / 4 * 2 + channel % 2) * 4;
  }

  static constexpr int kConstantBytes =
      kGroupChannels * 12;  // Behind patches: a group's biases, twice, and multipliers.

  int rows;  // Pooled ones of a segment.
  int strips;
  int first_tap;                     // Of the eight of a row: those before it have zeros.
  int strip_step;                    // Pooled columns of a strip: a window of three reaches into the strip before.
  int down, across, channel_blocks;  // The grid, of an image.
  ::fuselage::cuda::Divider channel_blocks_divider;
  StemPatch patch;  // Of two strips.
  // The first pixel of the first patch, and how far the next ones' are.
  int origin_y, origin_x, step_y, step_x;
  uint8_t input_flip;  // i8 codes as u8 codes; the bias makes up for it.

  FUSELAGE_HOST_DEVICE int64_t patch_bytes() const { return strips / 2 * patch.bytes; }
  int64_t bytes() const { return patch_bytes() + kWarps / strips * kConstantBytes; }
  int padded_channels() const { return channel_blocks * (kWarps / strips) * kGroupChannels; }
};

}  // namespace fuselage::int8::conv2d::cuda

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CUDA_STEM_LAYOUT_H_
