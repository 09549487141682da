#include "kernels/int8/attention/cuda/attention_cuda.h"

#include <memory>
#include <utility>

#include "kernels/attention/cuda/host.h"
#include "kernels/core/registry.h"
#include "kernels/cuda/kernel.h"
#include "kernels/int8/attention/attention.h"

namespace fuselage::int8::attention::cuda {
namespace {

using fuselage::attention::cuda::RowShapeOf;
using fuselage::attention::cuda::WithMask;

class Attention final : public kernels::Kernel {
 public:
  Attention(const kernels::KernelDesc& desc, const LaunchParams& params) : Kernel(desc), params_(params) {
    set_variant("cuda mma");
  }

 private:
  void Compute(absl::Span<const kernels::ConstBuffer> inputs, absl::Span<const kernels::Buffer> outputs,
               const kernels::RunContext& context) const override {
    LaunchParams params = params_;
    params.shape = WithMask(*this, params.shape, inputs);
    LaunchParams::Operand* operands[] = {&params.q, &params.k, &params.v};
    for (int i = 0; i < 3; ++i) {
      operands[i]->codes = static_cast<const uint8_t*>(inputs[i].data);
      operands[i]->end = operands[i]->codes + this->inputs()[i]->num_elements();
    }
    params.y.data = outputs[0].data;
    Launch(params, context.stream);
  }

  const LaunchParams params_;
};

LaunchParams::Operand OperandOf(const TensorType& type) {
  LaunchParams::Operand operand;
  operand.flip = type.dtype == DType::kU8 ? 0x80 : 0;
  operand.zero_point = type.quant->zero_point() - operand.flip;
  return operand;
}

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc) {
  RETURN_IF_ERROR(attention::Create(desc).status());
  LaunchParams params;
  ASSIGN_OR_RETURN(params.shape, RowShapeOf(desc));
  ASSIGN_OR_RETURN(const Multipliers multipliers, MultipliersOf(desc));
  params.score_multiplier = multipliers.scores;
  params.value_multiplier = multipliers.values;
  params.row_blocks = static_cast<int32_t>(fuselage::cuda::CeilDiv(params.shape.group_rows, kRowsOfABlock));
  params.y = fuselage::cuda::OutputOf(desc.output());
  LaunchParams::Operand* operands[] = {&params.q, &params.k, &params.v};
  for (int i = 0; i < 3; ++i) *operands[i] = OperandOf(desc.input(i));
  params.q_addend_twice = params.q.zero_point == -128;
  params.q_addend = static_cast<int8_t>(params.q_addend_twice ? 64 : -params.q.zero_point);
  return std::make_unique<Attention>(desc, params);
}

}  // namespace

void RegisterCuda(kernels::KernelRegistry& registry) {
  registry.Register({"int8.attention", kernels::LayoutRule::kRowMajor, Create});
}

}  // namespace fuselage::int8::attention::cuda
