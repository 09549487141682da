// The kernels themselves, for kernels that are made of them.
#ifndef FUSELAGE_KERNELS_INT8_AVG_POOL2D_CUDA_CREATE_H_
#define FUSELAGE_KERNELS_INT8_AVG_POOL2D_CUDA_CREATE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/core/kernel.h"
#include "kernels/int8/avg_pool2d/avg_pool2d.h"
#include "kernels/int8/avg_pool2d/cuda/mean.h"

namespace fuselage::int8::avg_pool2d::cuda {

Mean MeanOf(const avg_pool2d::Params& params);

// Errors: those of avg_pool2d::MakeParams, and the device's.
absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc);

}  // namespace fuselage::int8::avg_pool2d::cuda

#endif  // FUSELAGE_KERNELS_INT8_AVG_POOL2D_CUDA_CREATE_H_
