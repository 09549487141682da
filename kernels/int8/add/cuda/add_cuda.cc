#include "kernels/int8/add/cuda/add_cuda.h"

#include <memory>

#include "kernels/core/registry.h"
#include "kernels/cuda/device_buffer.h"
#include "kernels/cuda/kernel.h"
#include "kernels/cuda/operand_of.h"
#include "kernels/int8/add/add.h"

namespace fuselage::int8::add::cuda {
namespace {

using ::fuselage::cuda::CeilDiv;
using ::fuselage::cuda::CurrentDevice;
using ::fuselage::cuda::DeviceProperties;
using ::fuselage::cuda::OperandOf;
using ::fuselage::cuda::Spread;

class AddCuda final : public kernels::BinaryKernel {
 public:
  AddCuda(const kernels::KernelDesc& desc, const LaunchParams& params) : BinaryKernel(desc), params_(params) {
    set_variant("cuda");
  }

 private:
  void ComputeBinary(const void* a, const void* b, void* y, const kernels::RunContext& context) const override {
    LaunchParams params = params_;
    params.a.x = static_cast<const uint8_t*>(a);
    params.b.x = static_cast<const uint8_t*>(b);
    params.y = static_cast<uint8_t*>(y);
    Launch(params, context.stream);
  }

  const LaunchParams params_;
};

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc) {
  LaunchParams params;
  ASSIGN_OR_RETURN(params.add, MakeParams(desc));
  params.codes = desc.output().num_elements();
  params.a = OperandOf(desc.input(0), desc.output());
  params.b = OperandOf(desc.input(1), desc.output());
  ASSIGN_OR_RETURN(const DeviceProperties device, CurrentDevice());
  if (!params.a.whole || !params.b.whole) RETURN_IF_ERROR(Spread(params.codes, device, "add").status());
  ASSIGN_OR_RETURN(params.items, Spread(CeilDiv(params.codes, 16), device, "add"));
  return std::make_unique<AddCuda>(desc, params);
}

}  // namespace

void RegisterCuda(kernels::KernelRegistry& registry) {
  registry.Register({"int8.add", kernels::LayoutRule::kSame, Create});
}

}  // namespace fuselage::int8::add::cuda
