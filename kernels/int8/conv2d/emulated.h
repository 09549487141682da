// For tests of machines without AMX: its sources on emulated tiles.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_EMULATED_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_EMULATED_H_

#include "kernels/core/registry.h"

namespace fuselage::int8::conv2d {

// Chooses AMX wherever a machine with it would, else as Register's entry does. Runs on every machine.
kernels::KernelEntry EmulatedAmxEntry();

}  // namespace fuselage::int8::conv2d

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_EMULATED_H_
