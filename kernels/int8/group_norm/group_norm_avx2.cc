#include "kernels/int8/group_norm/rows.h"

namespace fuselage::int8::group_norm {

void avx2::Add(const Pixels& pixels, Sums* sums) { AddPixels(pixels, sums); }

void avx2::Scale(const Pixels& pixels, const float* gains, const float* offsets, const ElementwiseInstruction* function,
                 float* y) {
  ScalePixels(pixels, gains, offsets, function, y, kernels::avx2::Activate);
}

}  // namespace fuselage::int8::group_norm
