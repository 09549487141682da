#include "runtime/reference_kernel.h"

#include <cstring>
#include <utility>

namespace fuselage::runtime {
namespace {

using kernels::Buffer;
using kernels::ConstBuffer;
using kernels::KernelDesc;

void Copy(const void* from, void* to, int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

class ReferenceKernel final : public kernels::Kernel {
 public:
  // The schema is copied: the graph and its ops may be gone when the kernel runs.
  ReferenceKernel(const KernelDesc& desc, const ir::OpSchema& schema, std::vector<ReferenceOperand> operands,
                  ir::Type result)
      : Kernel(desc),
        schema_(schema),
        attributes_(desc.attributes),
        operands_(std::move(operands)),
        result_(std::move(result)) {
    set_variant("reference");
    int64_t weight_bytes = 0;
    for (const ReferenceOperand& operand : operands_) {
      if (operand.constant != nullptr) weight_bytes += operand.constant->byte_size();
    }
    set_weight_bytes(weight_bytes);
  }

 private:
  absl::Status TryCompute(absl::Span<const ConstBuffer> inputs, absl::Span<const Buffer> outputs,
                          const kernels::RunContext&) const override {
    std::vector<std::vector<Tensor>> values(operands_.size());
    std::vector<const std::vector<Tensor>*> operands;
    size_t next = 0;
    for (size_t i = 0; i < operands_.size(); ++i) {
      if (operands_[i].constant != nullptr) values[i].push_back(*operands_[i].constant);
      for (const TensorType& type : operands_[i].types) {
        Tensor& tensor = values[i].emplace_back(type);
        Copy(inputs[next++].data, tensor.raw_data(), tensor.byte_size());
      }
      operands.push_back(values[i].empty() ? nullptr : &values[i]);
    }
    ASSIGN_OR_RETURN(const std::vector<Tensor> results,
                     ir::Evaluate(schema_, attributes_, std::move(operands), result_));
    for (size_t i = 0; i < results.size(); ++i) Copy(results[i].raw_data(), outputs[i].data, results[i].byte_size());
    return absl::OkStatus();
  }

  const ir::OpSchema schema_;
  const AttributeMap attributes_;
  const std::vector<ReferenceOperand> operands_;
  const ir::Type result_;
};

}  // namespace

std::unique_ptr<kernels::Kernel> MakeReferenceKernel(const ir::OpSchema& schema, AttributeMap attributes,
                                                     std::vector<ReferenceOperand> operands, const ir::Type& result) {
  KernelDesc desc;
  desc.attributes = std::move(attributes);
  for (const ReferenceOperand& operand : operands) {
    desc.inputs.insert(desc.inputs.end(), operand.types.begin(), operand.types.end());
  }
  desc.outputs.assign(result.elements().begin(), result.elements().end());
  return std::make_unique<ReferenceKernel>(desc, schema, std::move(operands), result);
}

}  // namespace fuselage::runtime
