// Step: one thing that an executable does in a run, on memory that the schedule has planned.
#ifndef FUSELAGE_RUNTIME_STEP_H_
#define FUSELAGE_RUNTIME_STEP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ir/op.h"
#include "kernels/core/kernel.h"

namespace fuselage::runtime {

// A run changes nothing in it: executables that run at once share it.
class Step {
 public:
  virtual ~Step() = default;

  virtual absl::Status Run(absl::Span<const kernels::ConstBuffer> inputs, absl::Span<const kernels::Buffer> outputs,
                           const kernels::RunContext& context) const = 0;
  virtual std::string variant() const = 0;
  virtual int64_t scratch_bytes() const { return 0; }
  virtual int64_t weight_bytes() const { return 0; }
  // What a ReorderStep reorders, for a device that does it in its own way; null for other steps.
  virtual const TensorType* reordered_type() const { return nullptr; }
};

std::unique_ptr<Step> KernelStep(std::unique_ptr<kernels::Kernel> kernel);

// One input of `type` to the other layout.
std::unique_ptr<Step> ReorderStep(TensorType type);

// One input, unchanged.
std::unique_ptr<Step> CopyStep();

// One operand of a call, in schema order: a constant, absent (no types), or its elements at run time.
struct ReferenceOperand {
  std::shared_ptr<const Tensor> constant;
  std::vector<TensorType> types;  // Several for a tuple. Each takes one input of the step, in order.
};

// The op's reference evaluation, on row-major inputs and outputs. Unlike all other steps it allocates.
std::unique_ptr<Step> ReferenceStep(const ir::OpSchema& schema, AttributeMap attributes,
                                    std::vector<ReferenceOperand> operands, ir::Type result);

}  // namespace fuselage::runtime

#endif  // FUSELAGE_RUNTIME_STEP_H_
