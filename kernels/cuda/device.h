// The errors of CUDA's runtime. Only where there is a toolkit.
#ifndef FUSELAGE_KERNELS_CUDA_DEVICE_H_
#define FUSELAGE_KERNELS_CUDA_DEVICE_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kernels/cuda/device_buffer.h"  // IWYU pragma: export

namespace fuselage::cuda {

// "<what>: out of memory (2)"; see ErrorStatus.
absl::Status ToStatus(cudaError_t error, absl::string_view what);

}  // namespace fuselage::cuda

#endif  // FUSELAGE_KERNELS_CUDA_DEVICE_H_
