// Operands of mma.m16n8k32 that shared memory has in another order.
#ifndef FUSELAGE_KERNELS_CUDA_FRAGMENTS_H_
#define FUSELAGE_KERNELS_CUDA_FRAGMENTS_H_

#include <cstdint>

#include "kernels/cuda/arithmetic.h"
#include "kernels/cuda/block.h"
#include "kernels/cuda/codes.h"

namespace fuselage::cuda {

// Two fragments of B from rows of 16 codes, a row for each of 32 places in k: b[0] has the even columns, b[1] the odd
// ones, so that a thread's sums of both are of columns 4 * (lane % 4) to 4 * (lane % 4) + 3. `offsets` are those of the
// rows: lane 8 * i + r has row r of matrix i. What mma takes as k = 16 * h + 4 * t + j is then row 2 * t + j % 2 of
// matrix 2 * h + j / 2. `flip` is applied to all codes.
FUSELAGE_DEVICE void LoadColumns(Warp warp, const Lanes<uint32_t>& offsets, uint8_t flip, Lanes<uint32_t> (*b)[2]) {
  Lanes<Vector<uint32_t, 4>> rows;
  warp.LoadTransposed(offsets, &rows);
  warp.ForThreads([&](Thread thread) {
    const uint32_t* words = rows[thread].values;
    FUSELAGE_UNROLL
    for (int half = 0; half < 2; ++half) {
      b[0][half][thread] = PickBytes(words[2 * half], words[2 * half + 1], 0x6420) ^ Splat(flip);
      b[1][half][thread] = PickBytes(words[2 * half], words[2 * half + 1], 0x7531) ^ Splat(flip);
    }
  });
}

}  // namespace fuselage::cuda

#endif  // FUSELAGE_KERNELS_CUDA_FRAGMENTS_H_
