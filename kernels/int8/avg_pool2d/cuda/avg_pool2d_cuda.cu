#include "kernels/int8/avg_pool2d/cuda/avg_pool2d_cuda.h"

#include "kernels/cuda/codes.h"
#include "kernels/cuda/launch.h"

namespace fuselage::int8::avg_pool2d::cuda {
namespace {

using ::fuselage::cuda::Block;
using ::fuselage::cuda::kWarpSize;
using ::fuselage::cuda::PaddedTaps;
using ::fuselage::cuda::PoolWindow;
using ::fuselage::cuda::StoreWord;
using ::fuselage::cuda::Taps;
using ::fuselage::cuda::Thread;
using ::fuselage::cuda::ValidTaps;
using ::fuselage::cuda::Warp;

struct AvgPool2d {
  static constexpr int kWarps = kBlockWarps;
  static constexpr int kThreads = kWarps * kWarpSize;
  static constexpr int kSharedBytes = kThreads * 64;
  using Params = LaunchParams;

  // Where an item's window lies, and where its result goes.
  struct Item {
    TapGrid taps;
    int32_t count;  // What the sum is divided by.
    int channels;   // 16 at most.
    uint8_t* y;
  };
  FUSELAGE_DEVICE static Item Find(const Params& p, uint32_t index) {
    const PoolWindow::Axis &height = p.window.axes[0], &width = p.window.axes[1];
    const uint32_t pixel = index / p.channel_groups;  // Counted through all images.
    const int channel = 16 * static_cast<int>(index % p.channel_groups);
    const int32_t out_x = static_cast<int32_t>(pixel % width.out);
    const int32_t out_y = static_cast<int32_t>(pixel / width.out % height.out);
    const Taps x = ValidTaps(width, out_x), y = ValidTaps(height, out_y);
    const PoolWindow::Pitch& pitch = p.window.x;
    Item item;
    item.taps.rows = y.count();
    item.taps.columns = x.count();
    item.taps.row_step = height.dilation * pitch.row;
    item.taps.column_step = width.dilation * pitch.pixel;
    item.taps.first = p.x + pitch.first + pixel / width.out / height.out * pitch.image +
                      (y.start + y.begin * height.dilation) * pitch.row +
                      (x.start + x.begin * width.dilation) * pitch.pixel + channel;
    item.count =
        p.count_include_pad ? PaddedTaps(height, out_y) * PaddedTaps(width, out_x) : item.taps.rows * item.taps.columns;
    item.channels = p.window.channels - channel;
    item.y = p.y + int64_t{pixel} * p.window.channels + channel;
    return item;
  }

  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    const int items = kThreads / p.slices;  // At once.
    for (uint32_t first = static_cast<uint32_t>(block.x()) * items; first < p.items;
         first += static_cast<uint32_t>(p.blocks) * items) {
      block.Phase([&](Warp warp) {
        warp.ForThreads([&](Thread thread) {
          const int i = thread.index() % items, slice = thread.index() / items;
          if (first + i >= p.items) return;
          const Item item = Find(p, first + i);
          SumTaps(thread, p.mean, item.taps, slice, p.slices, item.channels, SumOffset(slice, i, items));
        });
      });
      block.Phase([&](Warp warp) {
        warp.ForThreads([&](Thread thread) {
          for (int work = thread.index(); work < 4 * items; work += kThreads) {
            const int i = work / 4, word = work % 4;
            if (first + i >= p.items) continue;
            const Item item = Find(p, first + i);
            const uint32_t codes =
                MeanWord(thread, p.mean, item.taps.rows * item.taps.columns, item.count, p.slices, i, items, word);
            StoreWord(thread, item.y + 4 * word, codes, item.channels - 4 * word);
          }
        });
      });
    }
  }
};

}  // namespace

void Launch(const LaunchParams& params, void* stream) {
  fuselage::cuda::Launch<AvgPool2d>({params.blocks, 1, 1}, AvgPool2d::kSharedBytes, params, stream);
}

}  // namespace fuselage::int8::avg_pool2d::cuda
