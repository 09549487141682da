// Where the operands of a convolution lie, for drivers that go by rows and pixels: no blocks or planes.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CORE_OPERANDS_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CORE_OPERANDS_H_

#include <cstdint>

#include "kernels/core/placement/placement.h"
#include "kernels/int8/conv2d/core/loops.h"
#include "kernels/int8/conv2d/core/problem.h"

namespace fuselage::int8::conv2d {

struct Operands {
  explicit Operands(const Problem& problem)
      : input(problem.PlacedInput()),
        residual(problem.PlacedResidual()),
        output(problem.PlacedOutput()),
        output_bytes(ByteSize(problem.output_type)) {}

  // Results from this pixel and channel on; the caller says which and how many channels they are.
  Destination To(const Arguments& arguments, int64_t image, int64_t y, int64_t x, int64_t channel) const {
    Destination to;
    to.output = static_cast<uint8_t*>(arguments.output) + (output.Offset(image, y, x) + channel) * output_bytes;
    to.residual = nullptr;
    if (arguments.residual != nullptr) {
      to.residual = static_cast<const uint8_t*>(arguments.residual) + residual.Offset(image, y, x) + channel;
    }
    to.pixel_stride = output.pixel_bytes;
    to.row_stride = output.row_bytes;
    to.residual_pixel_stride = residual.pixel_bytes;
    to.residual_row_stride = residual.row_bytes;
    to.channel = to.channels = 0;
    return to;
  }

  // From another pixel on.
  Destination At(Destination to, int64_t row, int64_t x) const {
    to.output = static_cast<uint8_t*>(to.output) + (row * to.row_stride + x * to.pixel_stride) * output_bytes;
    if (to.residual != nullptr) to.residual += row * to.residual_row_stride + x * to.residual_pixel_stride;
    return to;
  }

  // Do all results follow each other at one distance? Then several rows are stored as one.
  bool rows_joined() const { return output.placement.even() && residual.placement.even(); }

  const kernels::PlacedTensor input, residual, output;
  const int64_t output_bytes;  // Of an element.
};

}  // namespace fuselage::int8::conv2d

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CORE_OPERANDS_H_
