// What the drivers (direct.cc, winograd.cc, depthwise.cc, tiled.cc) hand to the inner loops of an instruction set,
// which the loops.h beside each of them declares. Plain structs and functions only: the sources behind them are
// compiled for that instruction set, and an inline function emitted there must never be the copy that the linker keeps
// for all.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CORE_LOOPS_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CORE_LOOPS_H_

#include <stdint.h>

#include "ir/base/elementwise_math.h"
#include "kernels/core/multiply/multiply.h"

namespace fuselage::int8::conv2d {

using kernels::kDwordBytes;
using kernels::kMaxRows;
using kernels::kPanel;
using kernels::kPanelBytes;
using kernels::Multiply;

// From accumulators to the output. Codes are handled as u8: i8 codes have their top bit flipped on the way, and zero
// points, lo and hi below are shifted by 128 to match. Arrays hold whole panels.
struct OutputStage {
  const int32_t* bias;
  const float* multiplier;
  const float* float_bias;  // Float output only; then the multiplier is s_x * s_w.
  // In front of the clamp, null: none. Then values before it are real, and codes are those of
  // fma(function(v), function_multiplier, function_offset), which have values without a function too.
  const ElementwiseInstruction* function;
  const float *function_multiplier, *function_offset;
  float residual_multiplier;
  int32_t residual_zero_point;
  int32_t zero_point;
  uint8_t lo, hi;
  uint8_t residual_flip, output_flip;  // 0x80 where the codes are i8, else 0.
  bool has_residual;
  bool is_float;
  bool relu;  // Of a float output; codes have it in `lo`.
  // u8 codes of the whole range with zero point 0, the residual's too, and |v| < 2^31 whatever the sums: nothing to
  // add, clamp or flip, and no function.
  bool plain;
};

// Where a panel's (or several panels') results go. Pointers are at the first pixel and channel of the block.
struct Destination {
  void* output;
  const uint8_t* residual;  // Null: none.
  int64_t pixel_stride;     // Elements.
  int64_t row_stride;       // Elements; for blocks of several rows.
  int64_t residual_pixel_stride, residual_row_stride;
  int channel;   // The first, as an index into OutputStage's arrays.
  int channels;  // How many of the panels' channels exist.
};

// `pixels` rows of accumulators to consecutive pixels.
using FinishPixels = void(const OutputStage&, const Destination&, const int32_t* c, int64_t c_stride, int pixels);

}  // namespace fuselage::int8::conv2d

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CORE_LOOPS_H_
