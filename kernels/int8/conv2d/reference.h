// The scalar variant: the definition that all others must match byte for byte.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_REFERENCE_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_REFERENCE_H_

#include <memory>

#include "kernels/int8/conv2d/core/problem.h"

namespace fuselage::int8::conv2d {

std::unique_ptr<Algorithm> MakeReference(const Problem& problem);

}  // namespace fuselage::int8::conv2d

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_REFERENCE_H_
