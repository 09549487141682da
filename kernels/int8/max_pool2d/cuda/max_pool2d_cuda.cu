#include "kernels/int8/max_pool2d/cuda/max_pool2d_cuda.h"

#include "kernels/cuda/codes.h"
#include "kernels/cuda/launch.h"

namespace fuselage::int8::max_pool2d::cuda {
namespace {

using ::fuselage::cuda::Block;
using ::fuselage::cuda::Codes16;
using ::fuselage::cuda::ForEach;
using ::fuselage::cuda::kItemWarps;
using ::fuselage::cuda::LoadCodes;
using ::fuselage::cuda::MaxOfBytes;
using ::fuselage::cuda::PoolWindow;
using ::fuselage::cuda::Splat;
using ::fuselage::cuda::StoreCodes;
using ::fuselage::cuda::Taps;
using ::fuselage::cuda::Thread;
using ::fuselage::cuda::ValidTaps;

struct MaxPool2d {
  static constexpr int kWarps = kItemWarps;
  using Params = LaunchParams;

  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    const PoolWindow::Axis &height = p.window.axes[0], &width = p.window.axes[1];
    ForEach(block, p.items, [&](Thread thread, uint32_t item) {
      const uint32_t pixel = item / p.channel_groups;  // Counted through all images.
      const int channel = 16 * static_cast<int>(item % p.channel_groups);
      const int count = p.window.channels - channel;
      const Taps taps_x = ValidTaps(width, static_cast<int32_t>(pixel % width.out));
      const Taps taps_y = ValidTaps(height, static_cast<int32_t>(pixel / width.out % height.out));
      const uint8_t* image = p.x + p.window.x.first + pixel / width.out / height.out * p.window.x.image + channel;

      const uint32_t flip = Splat(p.flip);
      Codes16 largest = {};
      for (int i = taps_y.begin; i < taps_y.end; ++i) {
        const uint8_t* row = image + (taps_y.start + i * height.dilation) * p.window.x.row;
        for (int j = taps_x.begin; j < taps_x.end; ++j) {
          const Codes16 codes = LoadCodes(thread, row + (taps_x.start + j * width.dilation) * p.window.x.pixel, count);
          FUSELAGE_UNROLL
          for (int k = 0; k < 4; ++k) largest.values[k] = MaxOfBytes(largest.values[k], codes.values[k] ^ flip);
        }
      }
      FUSELAGE_UNROLL
      for (uint32_t& word : largest.values) word ^= flip;
      StoreCodes(thread, p.y + int64_t{pixel} * p.window.channels + channel, largest, count);
    });
  }
};

}  // namespace

void Launch(const LaunchParams& params, void* stream) {
  fuselage::cuda::Launch<MaxPool2d>({params.items.blocks, 1, 1}, /*shared_bytes=*/0, params, stream);
}

}  // namespace fuselage::int8::max_pool2d::cuda
