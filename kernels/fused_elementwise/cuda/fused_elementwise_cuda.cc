#include "kernels/fused_elementwise/cuda/fused_elementwise_cuda.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "kernels/core/registry.h"
#include "kernels/core/requantize.h"
#include "kernels/cuda/device_buffer.h"
#include "kernels/cuda/kernel.h"
#include "kernels/cuda/operand_of.h"
#include "kernels/fused_elementwise/fused_elementwise.h"

namespace fuselage::fused_elementwise::cuda {
namespace {

using ::fuselage::cuda::CeilDiv;
using ::fuselage::cuda::CurrentDevice;
using ::fuselage::cuda::DeviceBuffer;
using ::fuselage::cuda::DeviceProperties;
using ::fuselage::cuda::OperandOf;
using ::fuselage::cuda::Spread;

// The CPU's result for each code, or for each pair of codes.
absl::StatusOr<std::vector<uint8_t>> MakeTable(const kernels::KernelDesc& desc) {
  const int64_t size = desc.inputs.size() == 1 ? 256 : 65536;
  kernels::KernelDesc flat = desc;
  std::vector<std::vector<uint8_t>> operands;
  std::vector<kernels::ConstBuffer> inputs;
  for (auto& input : flat.inputs) {
    input->shape = {size};
    input->layout = Layout::kRowMajor;
    const bool last = operands.size() + 1 == flat.inputs.size();
    operands.emplace_back(size);
    for (int64_t i = 0; i < size; ++i) operands.back()[i] = static_cast<uint8_t>(last ? i : i / 256);
  }
  for (const std::vector<uint8_t>& operand : operands) inputs.push_back({operand.data(), size});
  flat.outputs[0].shape = {size};
  flat.outputs[0].layout = Layout::kRowMajor;
  ASSIGN_OR_RETURN(const std::unique_ptr<kernels::Kernel> kernel, fused_elementwise::Create(flat));
  std::vector<uint8_t> table(size), scratch(kernel->scratch_bytes() + 64);
  kernels::Serial serial;
  kernels::RunContext context;
  context.parallel = &serial;
  const int64_t misalignment = reinterpret_cast<uintptr_t>(scratch.data()) % 64;
  context.scratch = {scratch.data() + (64 - misalignment) % 64, kernel->scratch_bytes()};
  RETURN_IF_ERROR(kernel->Run(inputs, {kernels::Buffer{table.data(), size}}, context));
  return table;
}

class Table final : public kernels::Kernel {
 public:
  Table(const kernels::KernelDesc& desc, DeviceBuffer table, const LaunchParams& params)
      : Kernel(desc), table_(std::move(table)), params_(params) {
    set_variant("cuda table");
    set_weight_bytes(table_.bytes());
  }

 private:
  void Compute(absl::Span<const kernels::ConstBuffer> inputs, absl::Span<const kernels::Buffer> outputs,
               const kernels::RunContext& context) const override {
    LaunchParams params = params_;
    for (int i = 0; i < params.num_operands; ++i) params.operands[i].x = static_cast<const uint8_t*>(inputs[i].data);
    params.y = static_cast<uint8_t*>(outputs[0].data);
    Launch(params, context.stream);
  }

  const DeviceBuffer table_;
  const LaunchParams params_;
};

class Elementwise final : public kernels::Kernel {
 public:
  Elementwise(const kernels::KernelDesc& desc, const StepParams& params) : Kernel(desc), params_(params) {
    set_variant("cuda");
  }

 private:
  void Compute(absl::Span<const kernels::ConstBuffer> inputs, absl::Span<const kernels::Buffer> outputs,
               const kernels::RunContext& context) const override {
    StepParams params = params_;
    for (int i = 0; i < params.num_operands; ++i) params.operands[i].x = static_cast<const uint8_t*>(inputs[i].data);
    params.y = outputs[0].data;
    Launch(params, context.stream);
  }

  const StepParams params_;
};

StepParams::Encoding EncodingOf(const TensorType& type) {
  const kernels::UnsignedForm form = kernels::UnsignedFormOf(type);
  return {form.flip, form.zero_point, type.quant->scale()};
}

absl::StatusOr<std::unique_ptr<kernels::Kernel>> CreateSteps(const kernels::KernelDesc& desc) {
  ASSIGN_OR_RETURN(const std::vector<ElementwiseInstruction> steps, StepsOf(desc));
  if (desc.inputs.size() > kStepOperands || steps.size() > kMostSteps) {
    return absl::UnimplementedError(absl::StrCat(desc.op, " on CUDA: ", desc.inputs.size(), " operands and ",
                                                 steps.size(), " steps, wanted at most ", kStepOperands, " and ",
                                                 kMostSteps));
  }
  StepParams params;
  for (const ElementwiseInstruction& step : steps) {
    float y;
    if (!Step(step, 1, 1, &y)) return absl::UnimplementedError(absl::StrCat(desc.op, " on CUDA: one of its steps"));
    params.steps[params.num_steps++] = step;
  }
  ASSIGN_OR_RETURN(const DeviceProperties device, CurrentDevice());
  ASSIGN_OR_RETURN(params.items, Spread(desc.output().num_elements(), device, desc.op));
  params.codes = desc.output().quant.has_value();
  params.num_operands = static_cast<int>(desc.inputs.size());
  for (int i = 0; i < params.num_operands; ++i) {
    params.operands[i] = OperandOf(desc.input(i), desc.output());
    if (params.codes) params.encodings[i] = EncodingOf(desc.input(i));
  }
  if (params.codes) params.result = EncodingOf(desc.output());
  return std::make_unique<Elementwise>(desc, params);
}

}  // namespace

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc) {
  RETURN_IF_ERROR(fused_elementwise::Create(desc).status());
  if (!desc.output().quant || desc.inputs.size() > kTableOperands) return CreateSteps(desc);
  LaunchParams params;
  params.num_operands = static_cast<int>(desc.inputs.size());
  ASSIGN_OR_RETURN(const DeviceProperties device, CurrentDevice());
  const int64_t codes = desc.output().num_elements();
  RETURN_IF_ERROR(Spread(codes, device, desc.op).status());  // Codes are counted, too.
  ASSIGN_OR_RETURN(params.items, Spread(CeilDiv(codes, 16), device, desc.op));
  params.codes = static_cast<uint32_t>(codes);
  for (int i = 0; i < params.num_operands; ++i) params.operands[i] = OperandOf(desc.input(i), desc.output());
  ASSIGN_OR_RETURN(const std::vector<uint8_t> table, MakeTable(desc));
  ASSIGN_OR_RETURN(DeviceBuffer memory,
                   DeviceBuffer::Upload(table.data(), table.size(), absl::StrCat("the table of ", desc.op)));
  params.table = static_cast<const uint8_t*>(memory.data());
  return std::make_unique<Table>(desc, std::move(memory), params);
}

void RegisterCuda(kernels::KernelRegistry& registry) {
  kernels::KernelRegistry on_cpu;
  fused_elementwise::Register(on_cpu);
  for (const kernels::KernelEntry* entry : on_cpu.Sorted()) {
    absl::string_view op = entry->op;
    registry.Register({std::string(op), entry->layout, Create});
    // The same of floats, for which the CPU has other kernels.
    if (absl::ConsumePrefix(&op, "int8.") && on_cpu.FindOrNull(op) == nullptr) {
      registry.Register({std::string(op), entry->layout, Create});
    }
  }
  registry.Register({"neg", kernels::LayoutRule::kSame, Create});
}

}  // namespace fuselage::fused_elementwise::cuda
