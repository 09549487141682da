#include "kernels/core/avx512.h"
#include "kernels/int8/group_norm/rows.h"

namespace fuselage::int8::group_norm {

void FUSELAGE_AVX512_VNNI::Add(const Pixels& pixels, Sums* sums) { AddPixels(pixels, sums); }

void FUSELAGE_AVX512_VNNI::Scale(const Pixels& pixels, const float* gains, const float* offsets,
                                 const ElementwiseInstruction* function, float* y) {
  ScalePixels(pixels, gains, offsets, function, y, kernels::FUSELAGE_AVX512_VNNI::Activate);
}

}  // namespace fuselage::int8::group_norm
