#include "kernels/attention/cuda/attention_cuda.h"

#include <memory>

#include "kernels/attention/attention.h"
#include "kernels/attention/cuda/host.h"
#include "kernels/core/registry.h"

namespace fuselage::attention::cuda {
namespace {

static_assert(kCpuRows == kBlockRows);

class Attention final : public kernels::Kernel {
 public:
  Attention(const kernels::KernelDesc& desc, const LaunchParams& params) : Kernel(desc), params_(params) {
    set_variant("cuda");
  }

 private:
  void Compute(absl::Span<const kernels::ConstBuffer> inputs, absl::Span<const kernels::Buffer> outputs,
               const kernels::RunContext& context) const override {
    LaunchParams params = params_;
    params.shape = WithMask(*this, params.shape, inputs);
    params.q = static_cast<const float*>(inputs[0].data);
    params.k = static_cast<const float*>(inputs[1].data);
    params.v = static_cast<const float*>(inputs[2].data);
    params.y = static_cast<float*>(outputs[0].data);
    Launch(params, context.stream);
  }

  const LaunchParams params_;
};

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc) {
  RETURN_IF_ERROR(CreateWith(Variants(), desc).status());
  LaunchParams params;
  ASSIGN_OR_RETURN(params.shape, RowShapeOf(desc));
  params.scale = static_cast<float>(desc.GetFloat("scale"));
  return std::make_unique<Attention>(desc, params);
}

}  // namespace

void RegisterCuda(kernels::KernelRegistry& registry) {
  registry.Register({"scaled_dot_product_attention", kernels::LayoutRule::kRowMajor, Create});
}

}  // namespace fuselage::attention::cuda
