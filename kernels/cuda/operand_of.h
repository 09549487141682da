#ifndef FUSELAGE_KERNELS_CUDA_OPERAND_OF_H_
#define FUSELAGE_KERNELS_CUDA_OPERAND_OF_H_

#include "ir/base/tensor.h"
#include "kernels/cuda/operand.h"

namespace fuselage::cuda {

// An operand that broadcasts to `result`, as kernels::Broadcast wants both; without its data.
Operand OperandOf(const TensorType& type, const TensorType& result);

}  // namespace fuselage::cuda

#endif  // FUSELAGE_KERNELS_CUDA_OPERAND_OF_H_
