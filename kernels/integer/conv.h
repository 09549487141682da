// What the kernels of conv_integer2d share.
#ifndef FUSELAGE_KERNELS_INTEGER_CONV_H_
#define FUSELAGE_KERNELS_INTEGER_CONV_H_

#include <array>
#include <cstdint>
#include <memory>

#include "kernels/core/kernel.h"

namespace fuselage::integer {

enum ConvOperand { kInput, kInputZeroPoint };  // Those that arrive at run time.

struct Axis {
  int64_t input, output, kernel, stride, dilation, begin;

  // Where tap `tap` of output `i` lies, which may be in the padding.
  int64_t Place(int64_t i, int64_t tap) const { return i * stride - begin + tap * dilation; }
  bool Includes(int64_t place) const { return place >= 0 && place < input; }
};
using Axes = std::array<Axis, 2>;  // Rows, columns.

// A constant weight less its zero point.
struct ConvWeight {
  const Tensor& codes;
  const Tensor* zero_point;  // Null: 0.

  int16_t operator()(int64_t channel, int64_t i) const {
    const int64_t zero = zero_point == nullptr || zero_point->num_elements() == 1 ? 0 : channel;
    const int64_t elements = codes.num_elements() / codes.dim(0);
    return static_cast<int16_t>(codes.At(channel * elements + i) - (zero_point == nullptr ? 0 : zero_point->At(zero)));
  }
};

// One input and one output channel per group: each channel's window by itself (pixel.h).
std::unique_ptr<kernels::Kernel> MakeDepthwise(const kernels::KernelDesc& desc, const Axes& axes,
                                               const ConvWeight& weight);

}  // namespace fuselage::integer

#endif  // FUSELAGE_KERNELS_INTEGER_CONV_H_
