#include "kernels/int8/attention/cuda/attention_cuda.h"

#include <memory>

#include "kernels/attention/cuda/host.h"
#include "kernels/core/registry.h"
#include "kernels/core/requantize.h"
#include "kernels/int8/attention/attention.h"

namespace fuselage::int8::attention::cuda {
namespace {

using fuselage::attention::cuda::RowShapeOf;
using fuselage::attention::cuda::WithMask;

class Attention final : public kernels::Kernel {
 public:
  Attention(const kernels::KernelDesc& desc, const LaunchParams& params) : Kernel(desc), params_(params) {
    set_variant("cuda dp4a");
  }

 private:
  void Compute(absl::Span<const kernels::ConstBuffer> inputs, absl::Span<const kernels::Buffer> outputs,
               const kernels::RunContext& context) const override {
    LaunchParams params = params_;
    params.shape = WithMask(*this, params.shape, inputs);
    params.q.codes = static_cast<const uint8_t*>(inputs[0].data);
    params.k.codes = static_cast<const uint8_t*>(inputs[1].data);
    params.v.codes = static_cast<const uint8_t*>(inputs[2].data);
    params.y = outputs[0].data;
    Launch(params, context.stream);
  }

  const LaunchParams params_;
};

LaunchParams::Operand OperandOf(const TensorType& type) {
  LaunchParams::Operand operand;
  operand.flip = type.dtype == DType::kU8 ? 0x80 : 0;
  operand.zero_point = type.quant->zero_point() - (type.dtype == DType::kU8 ? 128 : 0);
  return operand;
}

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc) {
  RETURN_IF_ERROR(attention::Create(desc).status());
  LaunchParams params;
  ASSIGN_OR_RETURN(params.shape, RowShapeOf(desc));
  ASSIGN_OR_RETURN(const Multipliers multipliers, MultipliersOf(desc));
  params.score_multiplier = multipliers.scores;
  params.value_multiplier = multipliers.values;
  params.q = OperandOf(desc.input(0));
  params.k = OperandOf(desc.input(1));
  params.v = OperandOf(desc.input(2));
  params.float_output = desc.output().dtype == DType::kF32;
  if (!params.float_output) {
    const kernels::UnsignedForm form = kernels::UnsignedFormOf(desc.output());
    params.flip = form.flip;
    params.zero_point = form.zero_point;
  }
  return std::make_unique<Attention>(desc, params);
}

}  // namespace

void RegisterCuda(kernels::KernelRegistry& registry) {
  registry.Register({"int8.attention", kernels::LayoutRule::kRowMajor, Create});
}

}  // namespace fuselage::int8::attention::cuda
