#include "kernels/int8/quantize/cuda/quantize_cuda.h"

#include <memory>

#include "kernels/core/registry.h"
#include "kernels/cuda/device_buffer.h"
#include "kernels/cuda/kernel.h"
#include "kernels/int8/quantize/cuda/pixel_groups_of.h"
#include "kernels/int8/quantize/quantize.h"

namespace fuselage::int8::quantize::cuda {
namespace {

using ::fuselage::cuda::CurrentDevice;
using ::fuselage::cuda::DeviceProperties;
using ::fuselage::cuda::MakeQuantizer;
using ::fuselage::cuda::UnaryLaunch;

bool Places(const kernels::KernelDesc& desc) {
  const absl::StatusOr<quantize::Params> params = MakeParams(desc);
  return params.ok() && CheckPixelPlacement(desc, params->channels).ok();
}

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc) {
  ASSIGN_OR_RETURN(const quantize::Params quantize, MakeParams(desc));
  RETURN_IF_ERROR(CheckPixelPlacement(desc, quantize.channels));
  ASSIGN_OR_RETURN(const DeviceProperties device, CurrentDevice());
  LaunchParams params;
  ASSIGN_OR_RETURN(params.groups, PixelGroupsOf(desc, quantize.images, quantize.channels, quantize.pixels, device));
  params.quantizer = MakeQuantizer(quantize.scale, {quantize.zero_point, quantize.lo, quantize.hi}, quantize.flip);
  return std::make_unique<UnaryLaunch<LaunchParams>>(desc, params, Launch);
}

}  // namespace

void RegisterCuda(kernels::KernelRegistry& registry) {
  registry.Register({"int8.quantize", kernels::LayoutRule::kAnyInput, Create, Places});
}

}  // namespace fuselage::int8::quantize::cuda
