// int8.conv2d_max_pool2d as its two parts.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CUDA_POOLED_CONV_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CUDA_POOLED_CONV_H_

#include "absl/status/statusor.h"
#include "kernels/core/kernel.h"
#include "kernels/core/pool_window.h"

namespace fuselage::int8::conv2d::cuda {

// The convolution, with its own output, and the window of its max pool: the attributes with the prefix "pool_".
struct PooledConv {
  kernels::KernelDesc conv;
  kernels::PoolWindow pool;
};
absl::StatusOr<PooledConv> SplitPool(const kernels::KernelDesc& desc);

}  // namespace fuselage::int8::conv2d::cuda

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CUDA_POOLED_CONV_H_
