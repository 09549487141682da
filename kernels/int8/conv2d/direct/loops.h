// The inner loops of direct.cc, by instruction set.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_DIRECT_LOOPS_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_DIRECT_LOOPS_H_

#include <stdint.h>

#include "kernels/core/multiply/pairs.h"
#include "kernels/core/variant.h"
#include "kernels/int8/conv2d/core/loops.h"

namespace fuselage::int8::conv2d::direct {

constexpr int kMostFewChannels = 8;

struct Loops {
  int lanes;               // Of int32 in a vector.
  int element_bytes;       // 2: int16, input codes as signed; 1: u8, input codes as unsigned.
  double scattered_tiles;  // Multiply takes row_offsets where at most so many of the tiles remain; 0: it does not.
  int max_rows;            // Of one call of multiply: a multiple of kMaxRows.
  int max_panels;
  int chunk_depth;  // Dwords whose weights (of max_panels panels) stay in the cache that products are fast from.
  // out[i] = x[i] ^ flip, as the element type (int16: sign-extended).
  void (*load)(const uint8_t* x, int64_t count, uint8_t flip, void* out);
  void (*multiply)(const Multiply&);
  // In its place for one group of at most kMostFewChannels output channels, whose weights lie [channel][dword] in a
  // panel's memory, in one chunk. Null: by panels.
  void (*multiply_few)(const Multiply&, int channels);
  FinishPixels* finish;
  // Groups the steps of a panel of weights, for a multiply that wants that (kernels/core/multiply/pairs.h), and
  // max_panels is 1. Null: they stay as they are.
  void (*group)(const kernels::PairPanel& panel, uint8_t* weights);
  // Both at once, for a line of any number of pixels whose results are codes: sums need not leave the registers, or not
  // the first-level cache. Null: apart.
  void (*multiply_codes)(const Multiply&, const OutputStage&, const Destination&);
};

using GetLoopsFunction = Loops();
FUSELAGE_VARIANTS(GetLoopsFunction, GetLoops)
FUSELAGE_VARIANTS(GetLoopsFunction, GetPairLoops)
FUSELAGE_VARIANTS(GetLoopsFunction, GetFewLoops)

}  // namespace fuselage::int8::conv2d::direct

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_DIRECT_LOOPS_H_
