// int8.group_norm and int8.instance_norm on CUDA devices: a block for each group of each image. It adds up the group's
// codes, sixteen a thread, makes each channel's gain and offset, and loads the codes again, four a thread, by then from
// a cache. The sums are of the signed form, in which dp4a squares four codes at once; q - z is the same in both forms.
//
// Declines what the CPU's kernel declines, and 2^31 elements or more.
#ifndef FUSELAGE_KERNELS_INT8_GROUP_NORM_CUDA_GROUP_NORM_CUDA_H_
#define FUSELAGE_KERNELS_INT8_GROUP_NORM_CUDA_GROUP_NORM_CUDA_H_

#include <cstdint>

#include "ir/base/elementwise_math.h"
#include "kernels/cuda/arithmetic.h"

namespace fuselage::kernels {
class KernelRegistry;
}

namespace fuselage::int8::group_norm::cuda {

constexpr int kChannelsAtOnce = 512;  // Whose gains and offsets lie in shared memory.

struct LaunchParams {
  int32_t images = 0, groups = 0, channels = 0, pixels = 1, group_channels = 1;
  // A group's codes are `rows` times `channel_codes` of each channel: all pixels' channels, or all channels' pixels.
  // From row to row it is `channels` codes.
  int32_t rows = 1, channel_codes = 1;
  fuselage::cuda::Divider by_channel_codes = {};
  double eps = 0;
  const float *weight = nullptr, *bias = nullptr;
  bool activated = false;
  ElementwiseInstruction function = {};

  const uint8_t* x = nullptr;
  uint8_t x_flip = 0;
  int32_t x_zero_point = 0;  // Of the signed form.
  float x_scale = 1;

  uint8_t* y = nullptr;
  uint8_t y_flip = 0;
  int32_t y_zero_point = 0, y_lo = 0, y_hi = 255;  // Of the unsigned form.
  float y_scale = 1;
};

void Launch(const LaunchParams& params, void* stream);

void RegisterCuda(kernels::KernelRegistry& registry);

}  // namespace fuselage::int8::group_norm::cuda

#endif  // FUSELAGE_KERNELS_INT8_GROUP_NORM_CUDA_GROUP_NORM_CUDA_H_
