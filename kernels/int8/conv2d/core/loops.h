// What the drivers (direct.cc, winograd.cc, depthwise.cc, tiled.cc) hand to the inner loops of an instruction set,
// which the loops.h beside each of them declares. Plain structs and functions only: the sources behind them are
// compiled for that instruction set, and an inline function emitted there must never be the copy that the linker keeps
// for all.
//
// All loops see four bytes of consecutive input channels (two int16, or four u8) as one "dword", and weights in panels
// of 16 output channels: [dword][16][4 bytes].
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CORE_LOOPS_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CORE_LOOPS_H_

#include <stdint.h>

#include "ir/base/elementwise_math.h"

namespace fuselage::int8::conv2d {

constexpr int kPanel = 16;      // Output channels of a weight panel.
constexpr int kMaxRows = 6;     // Pixels of one Multiply.
constexpr int kDwordBytes = 4;  // One step of a Multiply's depth.
constexpr int kPanelBytes = kPanel * kDwordBytes;

// c[r][16*p + j] (+)= sum over d of  a[r][d] . b[p][d][j],  modulo 2^32
struct Multiply {
  const void* a;
  int64_t a_stride;            // Bytes from row to row, where
  const int64_t* row_offsets;  // is null; else these are where rows are. AVX2: null.
  const int64_t* offsets;  // [depth]: where dword d of a row is, in bytes. Its load hides behind the multiplications.
  int64_t depth;           // Dwords.
  const void* b;
  int64_t b_stride;  // Bytes from panel to panel.
  int32_t* c;
  int64_t c_stride;  // Elements from row to row.
  int rows;          // 1 .. kMaxRows, or winograd::Loops::max_rows
  int panels;        // 1 .. max_panels
  bool accumulate;
};

// From accumulators to the output. Codes are handled as u8: i8 codes have their top bit flipped on the way, and zero
// points, lo and hi below are shifted by 128 to match. Arrays hold whole panels.
struct OutputStage {
  const int32_t* bias;
  const float* multiplier;
  const float* float_bias;  // Float output only; then the multiplier is s_x * s_w.
  // An activation that is no clamp, null: none. Then values before it are real, and codes are those of
  // function(v) * function_multiplier.
  const ElementwiseInstruction* function;
  float function_multiplier;
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
