// The kernels themselves, for kernels that are made of them.
#ifndef FUSELAGE_KERNELS_INT8_AVGPOOL_CUDA_CREATE_H_
#define FUSELAGE_KERNELS_INT8_AVGPOOL_CUDA_CREATE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/core/kernel.h"
#include "kernels/int8/avgpool/avgpool.h"
#include "kernels/int8/avgpool/cuda/mean.h"

namespace fuselage::int8::avgpool::cuda {

Mean MeanOf(const avgpool::Params& params);

// Errors: those of avgpool::MakeParams, and the device's.
absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc);

}  // namespace fuselage::int8::avgpool::cuda

#endif  // FUSELAGE_KERNELS_INT8_AVGPOOL_CUDA_CREATE_H_
