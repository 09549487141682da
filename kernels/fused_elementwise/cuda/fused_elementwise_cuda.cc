#include "kernels/fused_elementwise/cuda/fused_elementwise_cuda.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/core/registry.h"
#include "kernels/core/strides.h"
#include "kernels/cuda/device_buffer.h"
#include "kernels/cuda/kernel.h"
#include "kernels/fused_elementwise/fused_elementwise.h"
#include "kernels/movement/movement.h"

namespace fuselage::fused_elementwise::cuda {
namespace {

using ::fuselage::cuda::CeilDiv;
using ::fuselage::cuda::CurrentDevice;
using ::fuselage::cuda::DeviceBuffer;
using ::fuselage::cuda::DeviceProperties;
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

// Aligned at the last axis, as numpy does; merged where neighbours allow it.
LaunchParams::Operand OperandOf(const TensorType& type, const TensorType& result) {
  const std::vector<int64_t> from = kernels::StridesOf(type), to = kernels::StridesOf(result);
  const int lead = result.rank() - type.rank();
  std::vector<movement::StridedCopy::Axis> axes;
  for (int i = 0; i < result.rank(); ++i) {
    const bool stretched = i < lead || type.shape[i - lead] == 1;
    axes.push_back({result.shape[i], stretched ? 0 : from[i - lead], to[i]});
  }
  axes = movement::Simplified(std::move(axes));
  LaunchParams::Operand operand;
  operand.axes = static_cast<int>(axes.size());
  operand.whole = axes.size() == 1 && axes[0].from == 1;
  operand.rows = axes.back().size % 16 == 0;
  for (int i = 0; i < operand.axes; ++i) {
    const movement::StridedCopy::Axis& axis = axes[axes.size() - 1 - i];
    operand.axis[i] = {static_cast<uint32_t>(axis.size), axis.from};
  }
  return operand;
}

class Elementwise final : public kernels::Kernel {
 public:
  Elementwise(const kernels::KernelDesc& desc, DeviceBuffer table, const LaunchParams& params)
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

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc) {
  RETURN_IF_ERROR(fused_elementwise::Create(desc).status());
  if (!desc.output().quant || desc.inputs.size() > kMostOperands) {
    return absl::UnimplementedError(
        absl::StrCat(desc.op, " on CUDA: ", desc.inputs.size(), " operands, wanted one or two, of codes"));
  }
  LaunchParams params;
  params.num_operands = static_cast<int>(desc.inputs.size());
  ASSIGN_OR_RETURN(const DeviceProperties device, CurrentDevice());
  const int64_t codes = desc.output().num_elements();
  RETURN_IF_ERROR(Spread(codes, device, desc.op).status());  // Codes are counted, too.
  ASSIGN_OR_RETURN(params.items, Spread(CeilDiv(codes, 16), device, desc.op));
  params.codes = static_cast<uint32_t>(codes);
  for (int i = 0; codes > 0 && i < params.num_operands; ++i) {
    params.operands[i] = OperandOf(desc.input(i), desc.output());
  }
  ASSIGN_OR_RETURN(const std::vector<uint8_t> table, MakeTable(desc));
  ASSIGN_OR_RETURN(DeviceBuffer memory,
                   DeviceBuffer::Upload(table.data(), table.size(), absl::StrCat("the table of ", desc.op)));
  params.table = static_cast<const uint8_t*>(memory.data());
  return std::make_unique<Elementwise>(desc, std::move(memory), params);
}

}  // namespace

void RegisterCuda(kernels::KernelRegistry& registry) {
  kernels::KernelRegistry on_cpu;
  fused_elementwise::Register(on_cpu);
  for (const kernels::KernelEntry* entry : on_cpu.Sorted()) {
    if (!absl::StartsWith(entry->op, "int8.")) continue;
    kernels::KernelEntry on_cuda = *entry;
    on_cuda.create = Create;
    registry.Register(std::move(on_cuda));
  }
}

}  // namespace fuselage::fused_elementwise::cuda
