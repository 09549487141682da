// The kernel with what only its tests choose.
#ifndef FUSELAGE_KERNELS_INT8_GLOBAL_AVG_POOL_LINEAR_CUDA_CREATE_H_
#define FUSELAGE_KERNELS_INT8_GLOBAL_AVG_POOL_LINEAR_CUDA_CREATE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "kernels/core/kernel.h"

namespace fuselage::int8::global_avg_pool_linear::cuda {

struct Options {
  // The most that the blocks of the one kernel read together: each reads its image again, from the L2 cache. Two kernels
  // take 12 us for 13 MB on an H100.
  int64_t fused_bytes = int64_t{16} << 20;
};
absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc, const Options& options = {});

}  // namespace fuselage::int8::global_avg_pool_linear::cuda

#endif  // FUSELAGE_KERNELS_INT8_GLOBAL_AVG_POOL_LINEAR_CUDA_CREATE_H_
