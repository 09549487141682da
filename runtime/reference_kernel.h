// An op's reference evaluation as a kernel: what runs where there is no other.
#ifndef FUSELAGE_RUNTIME_REFERENCE_KERNEL_H_
#define FUSELAGE_RUNTIME_REFERENCE_KERNEL_H_

#include <memory>
#include <vector>

#include "ir/op.h"
#include "kernels/core/kernel.h"

namespace fuselage::runtime {

// One operand of a call, in schema order: a constant, absent (no types), or its elements at run time.
struct ReferenceOperand {
  std::shared_ptr<const Tensor> constant;
  std::vector<TensorType> types;  // Several for a tuple. Each takes one input of the kernel, in order.
};

// On row-major inputs and outputs. Unlike other kernels it allocates in a run.
std::unique_ptr<kernels::Kernel> MakeReferenceKernel(const ir::OpSchema& schema, AttributeMap attributes,
                                                     std::vector<ReferenceOperand> operands, const ir::Type& result);

}  // namespace fuselage::runtime

#endif  // FUSELAGE_RUNTIME_REFERENCE_KERNEL_H_
