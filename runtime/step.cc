#include "runtime/step.h"

#include <cstring>
#include <utility>

#include "runtime/reorder.h"

namespace fuselage::runtime {
namespace {

using kernels::Buffer;
using kernels::ConstBuffer;
using kernels::RunContext;

void Copy(const void* from, void* to, int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

class RunKernel final : public Step {
 public:
  explicit RunKernel(std::unique_ptr<kernels::Kernel> kernel) : kernel_(std::move(kernel)) {}

  absl::Status Run(absl::Span<const ConstBuffer> inputs, absl::Span<const Buffer> outputs,
                   const RunContext& context) const override {
    return kernel_->Run(inputs, outputs, context);
  }
  std::string variant() const override { return kernel_->variant(); }
  int64_t scratch_bytes() const override { return kernel_->scratch_bytes(); }
  int64_t weight_bytes() const override { return kernel_->weight_bytes(); }

 private:
  const std::unique_ptr<kernels::Kernel> kernel_;
};

class RunReorder final : public Step {
 public:
  explicit RunReorder(TensorType type) : type_(std::move(type)) {}

  absl::Status Run(absl::Span<const ConstBuffer> inputs, absl::Span<const Buffer> outputs,
                   const RunContext& context) const override {
    Reorder(type_, inputs[0].data, outputs[0].data, *context.parallel);
    return absl::OkStatus();
  }
  std::string variant() const override { return type_.layout == Layout::kRowMajor ? "to nhwc" : "to row-major"; }
  const TensorType* reordered_type() const override { return &type_; }

 private:
  const TensorType type_;
};

class RunCopy final : public Step {
 public:
  absl::Status Run(absl::Span<const ConstBuffer> inputs, absl::Span<const Buffer> outputs,
                   const RunContext&) const override {
    Copy(inputs[0].data, outputs[0].data, outputs[0].bytes);
    return absl::OkStatus();
  }
  std::string variant() const override { return "copy"; }
};

class RunReference final : public Step {
 public:
  // The schema is copied: the graph and its ops may be gone when the step runs.
  RunReference(const ir::OpSchema& schema, AttributeMap attributes, std::vector<ReferenceOperand> operands,
               ir::Type result)
      : schema_(schema),
        attributes_(std::move(attributes)),
        operands_(std::move(operands)),
        result_(std::move(result)) {
    for (const ReferenceOperand& operand : operands_) {
      if (operand.constant != nullptr) weight_bytes_ += operand.constant->byte_size();
    }
  }

  absl::Status Run(absl::Span<const ConstBuffer> inputs, absl::Span<const Buffer> outputs,
                   const RunContext&) const override {
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
  std::string variant() const override { return "reference"; }
  int64_t weight_bytes() const override { return weight_bytes_; }

 private:
  const ir::OpSchema schema_;
  const AttributeMap attributes_;
  const std::vector<ReferenceOperand> operands_;
  const ir::Type result_;
  int64_t weight_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Step> KernelStep(std::unique_ptr<kernels::Kernel> kernel) {
  return std::make_unique<RunKernel>(std::move(kernel));
}

std::unique_ptr<Step> ReorderStep(TensorType type) { return std::make_unique<RunReorder>(std::move(type)); }

std::unique_ptr<Step> CopyStep() { return std::make_unique<RunCopy>(); }

std::unique_ptr<Step> ReferenceStep(const ir::OpSchema& schema, AttributeMap attributes,
                                    std::vector<ReferenceOperand> operands, ir::Type result) {
  return std::make_unique<RunReference>(schema, std::move(attributes), std::move(operands), std::move(result));
}

}  // namespace fuselage::runtime
