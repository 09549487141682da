// Images of codes as CUDA kernels of one operand make them: a thread has four pixels, of all channels where a pixel has
// at most four bytes, else of four channels.
#ifndef FUSELAGE_KERNELS_INT8_QUANTIZE_CUDA_PIXEL_GROUPS_H_
#define FUSELAGE_KERNELS_INT8_QUANTIZE_CUDA_PIXEL_GROUPS_H_

#include <cstdint>

#include "kernels/cuda/arithmetic.h"
#include "kernels/cuda/codes.h"
#include "kernels/cuda/for_each.h"

namespace fuselage::int8::quantize::cuda {

// y is [images][pixels][pixel_bytes], of which `channels` are the operand's.
struct PixelGroups {
  fuselage::cuda::Items items;                 // [images][code_groups][pixel_groups]
  uint32_t pixel_groups = 0, code_groups = 0;  // An image's groups of four pixels, a pixel's of four codes.
  fuselage::cuda::Divider by_pixel_groups = {}, by_code_groups = {};
  int64_t channels = 1, pixels = 0;
  int32_t pixel_bytes = 1;
};

struct PixelGroup {
  uint32_t image;
  int channel;        // The first, as `pixel`.
  int64_t pixel, at;  // Of the image; and where its code lies in y.
  int pixels, codes;  // What there is from here on: pixels, but no more than four, and a pixel's codes.
};

// kPixelBytes: those of `groups` where they are 1, 3 or 4, else 0.
template <int kPixelBytes>
FUSELAGE_DEVICE PixelGroup GroupAt(const PixelGroups& groups, uint32_t item) {
  const uint32_t row = groups.by_pixel_groups.Divide(item);
  PixelGroup group;
  group.image = kPixelBytes > 0 ? row : groups.by_code_groups.Divide(row);
  group.channel = kPixelBytes > 0 ? 0 : static_cast<int>(4 * (row - group.image * groups.code_groups));
  group.pixel = int64_t{4} * (item - row * groups.pixel_groups);
  const int64_t left = groups.pixels - group.pixel;
  group.at = (group.image * groups.pixels + group.pixel) * groups.pixel_bytes + group.channel;
  group.pixels = static_cast<int>(left < 4 ? left : 4);
  group.codes = groups.pixel_bytes - group.channel;
  return group;
}

// Of a thread's codes, the 4 * kPixelBytes that follow each other in y; or four of each pixel, a word each.
template <int kPixelBytes>
FUSELAGE_DEVICE void StoreGroup(fuselage::cuda::Thread thread, const PixelGroups& groups, const PixelGroup& group,
                                const fuselage::cuda::Codes16& codes, uint8_t* y) {
  uint8_t* to = y + group.at;
  if constexpr (kPixelBytes == 4) {
    StoreCodes(thread, to, codes, 4 * group.pixels);
  } else {
    FUSELAGE_UNROLL
    for (int i = 0; i < (kPixelBytes > 0 ? kPixelBytes : 4); ++i) {
      if constexpr (kPixelBytes > 0) {
        StoreWord(thread, to + 4 * i, codes.values[i], kPixelBytes * group.pixels - 4 * i);
      } else if (i < group.pixels) {
        StoreWord(thread, to + int64_t{i} * groups.pixel_bytes, codes.values[i], group.codes);
      }
    }
  }
}

}  // namespace fuselage::int8::quantize::cuda

#endif  // FUSELAGE_KERNELS_INT8_QUANTIZE_CUDA_PIXEL_GROUPS_H_
