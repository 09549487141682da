// What the CUDA kernels of int8.conv2d are given: plain data, one struct for all of them.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CUDA_PARAMS_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CUDA_PARAMS_H_

#include <cstdint>

#include "ir/base/elementwise_math.h"
#include "kernels/cuda/arithmetic.h"
#include "kernels/cuda/block.h"
#include "kernels/cuda/fetch.h"
#include "kernels/int8/conv2d/cuda/stem_layout.h"

namespace fuselage::int8::conv2d::cuda {

using ::fuselage::cuda::Block;
using ::fuselage::cuda::CopyOrPad;
using ::fuselage::cuda::kHasClusters;
using ::fuselage::cuda::kMostOfCluster;
using ::fuselage::cuda::kWarpSize;
using ::fuselage::cuda::Lanes;
using ::fuselage::cuda::Padding;
using ::fuselage::cuda::PerThread;
using ::fuselage::cuda::PerWarp;
using ::fuselage::cuda::Recomputed;
using ::fuselage::cuda::Thread;
using ::fuselage::cuda::TileMap;
using ::fuselage::cuda::Vector;
using ::fuselage::cuda::Warp;

// The bytes of the inner dimension that a block multiplies between two barriers.
constexpr int kStep = 64;
// The buffers that a Gemm goes through, at most.
constexpr int kMostStages = 4;
// The steps of a ShortGemm's block, at most.
constexpr int kMostShortSteps = 20;
// The taps that a HopperHalo does.
constexpr int kHopperTaps = 3;

// The input channels that a tile of output channels needs: those of its groups.
struct ChannelWindow {
  ::fuselage::cuda::Divider group_outputs;
  int group_inputs;  // 0: of one group, whose window begins with the first channel.
  int alignment;     // A power of two.
  int last;          // No window begins later.

  FUSELAGE_HOST_DEVICE int First(int out_channel) const {
    const int first = static_cast<int>(group_outputs.Divide(out_channel)) * group_inputs & -alignment;
    return first < last ? first : last;
  }
};

// 16 bytes of the inner dimension: where their tap is from tap (0, 0), in pixels, their first channel, from the
// window's, and both in bytes of the input.
struct Piece {
  int tap_y, tap_x, channel;
  uint32_t distance;  // Modulo 2^32.
};

struct Params {
  // Operands, NHWC.
  const uint8_t* input;     // The bits of the codes.
  const uint8_t* residual;  // Null: none.
  void* output;             // Codes, or floats where float_bias is there.
  // Of a Gemm.
  int32_t* partial;   // The splits' sums, where there are several: [tiles, splits], each as threads have them.
  uint32_t* tickets;  // [tiles], for the splits.
  int32_t* sums;      // [rows, padded_channels], for Finish; null: Gemm stores the output.

  // Constants. Those by output channel have padded_channels values.
  const int8_t* weight;     // Packed as each kernel says.
  const int32_t* bias;      // b32, or -z_x * sum w where the output is float.
  const float* multiplier;  // m, or s_x * s_w.
  const float* float_bias;  // Null: the output is codes.
  int padded_channels;      // Output channels, up to a whole number of tiles.
  uint8_t padding;          // The input's zero point, for pixels outside of the image.

  int rows;  // Output pixels: batch * out_height * out_width.
  int in_channels, in_height, in_width;
  int out_channels, out_height, out_width;
  int kernel_height, kernel_width;
  int stride_y, stride_x;
  int pad_top, pad_left;
  int dilation_y, dilation_x;
  int groups;

  // Gemm: the inner dimension is [kernel_height, kernel_width, tap_channels], and zeros up to `steps` of kStep.
  ChannelWindow window;
  int tap_channels;  // The window's, up to a multiple of 16.
  int steps;
  int steps_per_split;
  int splits;
  // Halo: `steps` are its `slices` of kStep channels by taps, for Hopper up to a multiple of kHopperTaps.
  int slices;
  int patch_pixels, patch_bytes;  // Of a tile, and in shared memory.
  int patch_part;                 // The pixels that are fetched in a step.
  TileMap input_pixels;           // For Hopper: [pixels, channels],
  int boxes;                      // of which a patch has so many boxes,
  int blocks;                     // and the grid so many blocks.

  StemLayout stem;
  PooledStemLayout pooled_stem;
  ::fuselage::cuda::Divider by_out_width, by_out_height;
  ::fuselage::cuda::Divider by_pixel_threads;  // Depthwise: those of a pixel.

  // A max pool of the output codes, which `output` then has instead. Padding loses against every code.
  struct Pool {
    int out_height, out_width;
    int kernel_y, kernel_x;
    int stride_y, stride_x;
    int pad_top, pad_left;
    int dilation_y, dilation_x;
  } pool;

  const Piece* pieces;  // Of a Gemm, constants: [steps, kStep / 16], and kMostShortSteps more.
  // Of a halo, constants: of each column of the image which taps of a line are inside, a bit for each; of each line the
  // bits of the first taps of those that are.
  const uint32_t* taps_inside;

  ::fuselage::cuda::CodeOutput codes;  // Their low bytes are the output.
  bool float_relu;
  // i8 codes as u8 codes: with the top bit flipped, 0x80, and the zero point moved by 128.
  uint8_t output_flip, residual_flip;
  float residual_zero_point;  // And 2^23.
  float residual_multiplier;
  // In front of the clamp: codes are those of function(v) * function_multiplier. It is the business of the
  // kernels that finish four outputs at a time; Gemm leaves its sums to Finish, for an epilogue of many outputs would
  // hold the function many times, and Stem does not run.
  bool activated;
  ElementwiseInstruction function;
  float function_multiplier;

  int share_bits;  // Of splits that are a cluster: each finishes four outputs of 2^share_bits threads. 0: by tickets.
};

}  // namespace fuselage::int8::conv2d::cuda

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CUDA_PARAMS_H_
