// For tests of machines without AMX.
#ifndef FUSELAGE_KERNELS_TESTING_EMULATED_AMX_H_
#define FUSELAGE_KERNELS_TESTING_EMULATED_AMX_H_

#include "kernels/core/registry.h"

namespace fuselage::kernels {

// All kernels; convolutions take AMX, emulated, wherever a machine with it would, and the layouts that go with it.
void RegisterAllOnEmulatedAmx(KernelRegistry& registry);

}  // namespace fuselage::kernels

#endif  // FUSELAGE_KERNELS_TESTING_EMULATED_AMX_H_
