// The kernel itself, for tests.
#ifndef FUSELAGE_KERNELS_INT8_MATMUL_CUDA_CREATE_H_
#define FUSELAGE_KERNELS_INT8_MATMUL_CUDA_CREATE_H_

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "kernels/core/kernel.h"

namespace fuselage::int8::matmul::cuda {

// `wide`: by blocks of 128 rows, or of 64; nothing: the former where they fill the device.
absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc, std::optional<bool> wide = {});

}  // namespace fuselage::int8::matmul::cuda

#endif  // FUSELAGE_KERNELS_INT8_MATMUL_CUDA_CREATE_H_
