// Activations that are no clamp (ir/base/activation.h), on tiles of floats between a kernel's sums and its output: each
// instruction set compiles the loops of elementwise_math.h, whose bits are those of elementwise::Activated.
#ifndef FUSELAGE_KERNELS_CORE_ACTIVATE_H_
#define FUSELAGE_KERNELS_CORE_ACTIVATE_H_

#include <cstdint>

#include "ir/base/elementwise_math.h"
#include "kernels/core/variant.h"

namespace fuselage::kernels {

// values[i] = Activated(function, values[i]) for all of the tile, whose size is a multiple of kActivatedTogether.
constexpr int64_t kActivatedTogether = 16;
using ActivateFunction = void(const ElementwiseInstruction& function, float* values, int64_t size);

FUSELAGE_VARIANTS(ActivateFunction, Activate)

}  // namespace fuselage::kernels

#endif  // FUSELAGE_KERNELS_CORE_ACTIVATE_H_
