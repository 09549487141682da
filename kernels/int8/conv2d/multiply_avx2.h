// The matrix product of the AVX2 variants.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_MULTIPLY_AVX2_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_MULTIPLY_AVX2_H_

#include "kernels/int8/conv2d/primitives.h"

namespace fuselage::int8::conv2d {

// int16 dwords, one panel.
void MultiplyAvx2(const Multiply& m);

}  // namespace fuselage::int8::conv2d

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_MULTIPLY_AVX2_H_
