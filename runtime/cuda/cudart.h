// The CUDA runtime behind the Api interface. Only with a toolkit.
#ifndef FUSELAGE_RUNTIME_CUDA_CUDART_H_
#define FUSELAGE_RUNTIME_CUDA_CUDART_H_

#include <memory>

#include "runtime/cuda/api.h"

namespace fuselage::runtime::cuda {

std::unique_ptr<Api> MakeCudart();

}  // namespace fuselage::runtime::cuda

#endif  // FUSELAGE_RUNTIME_CUDA_CUDART_H_
