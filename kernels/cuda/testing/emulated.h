// The emulation's device: host memory.
#ifndef FUSELAGE_KERNELS_CUDA_TESTING_EMULATED_H_
#define FUSELAGE_KERNELS_CUDA_TESTING_EMULATED_H_

#include "kernels/cuda/block.h"

namespace fuselage::cuda {

// Allows loads from all buffers that are uploaded now.
void AllowUploads(Emulator* emulator);

}  // namespace fuselage::cuda

#endif  // FUSELAGE_KERNELS_CUDA_TESTING_EMULATED_H_
