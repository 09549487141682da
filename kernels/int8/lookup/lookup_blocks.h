// The walk over blocks of pixels, which the vector variants share: each compiles its own copy (internal linkage).
// Include the intrinsics first.
#ifndef FUSELAGE_KERNELS_INT8_LOOKUP_LOOKUP_BLOCKS_H_
#define FUSELAGE_KERNELS_INT8_LOOKUP_LOOKUP_BLOCKS_H_

#include "kernels/int8/lookup/lookup.h"
#include "kernels/int8/quantize/interleave3.h"

namespace fuselage::int8::lookup {
namespace {

// Of kBlock pixels of three channels, from planes or from pixels.
template <int kBlock, typename Look>
inline void LookUp3(const Params& p, const uint8_t* tables, const uint8_t* x, uint8_t* y, Look look) {
  uint8_t planes[3][kBlock];
  if (p.pixel_stride != 1) {
    for (int i = 0; i < kBlock; i += 16) {
      quantize::Deinterleave3<0>(x + 3 * i, planes[0] + i);
      quantize::Deinterleave3<1>(x + 3 * i, planes[1] + i);
      quantize::Deinterleave3<2>(x + 3 * i, planes[2] + i);
    }
  }
  for (int c = 0; c < 3; ++c) {
    const uint8_t* plane = p.pixel_stride == 1 ? x + c * p.channel_stride : planes[c];
    look(tables + (p.tables > 1 ? c * kTableBytes : 0), plane, planes[c]);
  }
  for (int i = 0; i < kBlock; i += 16) quantize::Interleave3(planes[0] + i, planes[1] + i, planes[2] + i, y + 3 * i);
}

// `look(table, from, to)` maps kBlock bytes. What is left, and other numbers of channels, goes the scalar way.
template <int kBlock, typename Look>
inline void LookUpBlocks(const Params& p, const uint8_t* tables, const uint8_t* x, uint8_t* y, int64_t begin,
                         int64_t end, Look look) {
  if (p.channels != 1 && p.channels != 3) return scalar::Run(p, tables, x, y, begin, end);
  while (begin < end) {
    const int64_t image = begin / p.pixels, last = end < (image + 1) * p.pixels ? end : (image + 1) * p.pixels;
    const uint8_t* from = x + image * p.pixels * (p.channels - p.pixel_stride);  // Of a pixel 0 of all images.
    for (; begin + kBlock <= last; begin += kBlock) {
      if (p.channels == 1) {
        look(tables + image % p.tables * kTableBytes, x + begin, y + begin);
      } else {
        LookUp3<kBlock>(p, tables, from + begin * p.pixel_stride, y + 3 * begin, look);
      }
    }
    scalar::Run(p, tables, x, y, begin, last);
    begin = last;
  }
}

}  // namespace
}  // namespace fuselage::int8::lookup

#endif  // FUSELAGE_KERNELS_INT8_LOOKUP_LOOKUP_BLOCKS_H_
