#include "kernels/int8/dequantize/cuda/dequantize_cuda.h"

#include <memory>

#include "kernels/core/registry.h"
#include "kernels/cuda/device_buffer.h"
#include "kernels/cuda/kernel.h"
#include "kernels/int8/dequantize/dequantize.h"

namespace fuselage::int8::dequantize::cuda {
namespace {

using ::fuselage::cuda::CeilDiv;
using ::fuselage::cuda::CurrentDevice;
using ::fuselage::cuda::DeviceProperties;
using ::fuselage::cuda::Spread;
using ::fuselage::cuda::UnaryLaunch;

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc) {
  LaunchParams params;
  ASSIGN_OR_RETURN(params.dequantize, MakeParams(desc));
  const dequantize::Params& dequantize = params.dequantize;
  const int64_t channel_groups = CeilDiv(dequantize.channels, 4), pixel_groups = CeilDiv(dequantize.pixels, 4);
  ASSIGN_OR_RETURN(const DeviceProperties device, CurrentDevice());
  ASSIGN_OR_RETURN(params.items, Spread(dequantize.images * channel_groups * pixel_groups, device, "dequantize"));
  params.pixel_groups = static_cast<uint32_t>(pixel_groups);
  params.channel_groups = static_cast<uint32_t>(channel_groups);
  return std::make_unique<UnaryLaunch<LaunchParams>>(desc, params, Launch);
}

}  // namespace

void RegisterCuda(kernels::KernelRegistry& registry) {
  registry.Register({"int8.dequantize", kernels::LayoutRule::kAnyOutput, Create});
}

}  // namespace fuselage::int8::dequantize::cuda
