// FP32 on CUDA devices, where cuDNN is installed: conv2d, linear, max_pool2d, global_avg_pool, relu and add, in NHWC.
// What INT8 is compared with on the same device. In FP32 indeed: no TF32.
//
// Each kernel runs once when it is created: what cuDNN refuses then is Unimplemented.
#ifndef FUSELAGE_KERNELS_FP32_CUDNN_FP32_CUDNN_H_
#define FUSELAGE_KERNELS_FP32_CUDNN_FP32_CUDNN_H_

#include "kernels/core/registry.h"

namespace fuselage::fp32::cudnn {

void RegisterCuda(kernels::KernelRegistry& registry);

}  // namespace fuselage::fp32::cudnn

#endif  // FUSELAGE_KERNELS_FP32_CUDNN_FP32_CUDNN_H_
