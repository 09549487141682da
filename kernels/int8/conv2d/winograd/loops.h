// The inner loops of winograd.cc, by instruction set.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_WINOGRAD_LOOPS_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_WINOGRAD_LOOPS_H_

#include <stdint.h>

#include "kernels/core/variant.h"
#include "kernels/int8/conv2d/core/loops.h"

namespace fuselage::int8::conv2d::winograd {

constexpr int kWeightRowPairs[3][2] = {{0, 5}, {1, 2}, {3, 4}};

// Position p = 6*i + j of a transformed tile.
struct Loops {
  int max_rows, max_panels;  // Of one multiply: tiles, and panels.
  int64_t max_weight_bytes;  // Transformed weights that stay in the second-level cache.
  // In the time of one product of the direct convolution, measured: how many a product of words takes, how many the
  // transforms of an input channel's 6x6 pixels and of an output channel's 4x4, and how many that of a kernel's weights
  // where it is done in each run.
  int64_t word_product, input_transform, output_transform, weight_transform;
  // v[p*position_stride + c] = (B'^T d B')[p] of channel c, where d[p] = pixels[p][c] ^ flip. There is room for `channels`
  // rounded up to 16.
  void (*transform_input)(const uint8_t* const pixels[36], int channels, uint8_t flip, int16_t* v,
                          int64_t position_stride);
  // Rows i of (H g H^T), a pair of them that has its sums in common: kWeightRowPairs[row_pair]. Position j of the first
  // row goes to first + j*position_stride (bytes), as [depth][16][2]; so does the second row. g is [depth][9][16][2].
  void (*transform_weight)(const int8_t* g, int64_t depth, int row_pair, void* first, void* second,
                           int64_t position_stride);
  void (*multiply)(const Multiply&);
  // sums[16*(4*r + s) + c] = Y[r][s] of channel c of one tile and panel, from its 36 accumulators.
  void (*transform_output)(const int32_t* accumulators, int64_t position_stride, int32_t* sums);
  // The outputs of these sums, of which `rows` x `columns` exist.
  void (*store)(const OutputStage&, const Destination&, const int32_t* sums, int rows, int columns);
};

using GetLoopsFunction = Loops();
FUSELAGE_VARIANTS(GetLoopsFunction, GetLoops)

}  // namespace fuselage::int8::conv2d::winograd

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_WINOGRAD_LOOPS_H_
