#include "kernels/int8/relu/cuda/relu_cuda.h"

#include <memory>

#include "kernels/core/registry.h"
#include "kernels/cuda/device_buffer.h"
#include "kernels/cuda/kernel.h"
#include "kernels/int8/relu/relu.h"

namespace fuselage::int8::relu::cuda {
namespace {

using ::fuselage::cuda::CeilDiv;
using ::fuselage::cuda::CurrentDevice;
using ::fuselage::cuda::DeviceProperties;
using ::fuselage::cuda::Spread;
using ::fuselage::cuda::UnaryLaunch;

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc) {
  LaunchParams params;
  ASSIGN_OR_RETURN(params.relu, MakeParams(desc));
  params.codes = desc.output().num_elements();
  ASSIGN_OR_RETURN(const DeviceProperties device, CurrentDevice());
  ASSIGN_OR_RETURN(params.items, Spread(CeilDiv(params.codes, 16), device, "relu"));
  return std::make_unique<UnaryLaunch<LaunchParams>>(desc, params, Launch);
}

}  // namespace

void RegisterCuda(kernels::KernelRegistry& registry) {
  registry.Register({"int8.relu", kernels::LayoutRule::kSame, Create});
}

}  // namespace fuselage::int8::relu::cuda
