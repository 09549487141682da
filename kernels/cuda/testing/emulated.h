// For tests that launch kernels in the emulation themselves.
#ifndef FUSELAGE_KERNELS_CUDA_TESTING_EMULATED_H_
#define FUSELAGE_KERNELS_CUDA_TESTING_EMULATED_H_

#include <cstdint>

#include "kernels/cuda/block.h"

namespace fuselage::cuda {

// All memory that kernels uploaded, as constants.
void AllowUploads(Emulator* emulator);

// Of all DeviceBuffers that there are.
int64_t DeviceBytes();

}  // namespace fuselage::cuda

#endif  // FUSELAGE_KERNELS_CUDA_TESTING_EMULATED_H_
