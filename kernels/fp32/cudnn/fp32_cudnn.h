// FP32 and FP16 on CUDA devices, where cuDNN is installed: conv2d, linear, max_pool2d, global_avg_pool, relu and add,
// in NHWC, whose operands are all f32 or all f16. What INT8 is compared with on the same device. FP32 is FP32 indeed:
// no TF32; FP16 is that of tensor cores, with sums in float. An add of f32 is not cuDNN's, but fused_elementwise's, of
// any shapes.
//
// Each kernel runs once when it is created: what cuDNN refuses then is Unimplemented.
#ifndef FUSELAGE_KERNELS_FP32_CUDNN_FP32_CUDNN_H_
#define FUSELAGE_KERNELS_FP32_CUDNN_FP32_CUDNN_H_

#include "kernels/core/registry.h"

namespace fuselage::fp32::cudnn {

void RegisterCuda(kernels::KernelRegistry& registry);

}  // namespace fuselage::fp32::cudnn

#endif  // FUSELAGE_KERNELS_FP32_CUDNN_FP32_CUDNN_H_
