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

bool Places(const kernels::KernelDesc& desc) { return MakeParams(desc).ok() && CheckPixelPlacement(desc).ok(); }

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc) {
  ASSIGN_OR_RETURN(quantize::Params quantize, MakeParams(desc));
  RETURN_IF_ERROR(CheckPixelPlacement(desc));
  ASSIGN_OR_RETURN(const DeviceProperties device, CurrentDevice());
  LaunchParams params;
  if (const int64_t channels = desc.output().rank() == 4 ? desc.output().shape[1] : 1;
      !desc.output_placement.dense() && quantize.channels != channels) {
    // What keeps its order, and is spread, has pixels already.
    params.planes = false;
    quantize.channels = channels;
    quantize.pixels /= channels;
  }
  ASSIGN_OR_RETURN(params.groups, PixelGroupsOf(desc, quantize.images, quantize.channels, quantize.pixels, device));
  params.quantizer = MakeQuantizer(quantize.scale, {quantize.zero_point, quantize.lo, quantize.hi}, quantize.flip);
  return std::make_unique<UnaryLaunch<LaunchParams>>(desc, params, Launch);
}

}  // namespace

void RegisterCuda(kernels::KernelRegistry& registry) {
  registry.Register({"int8.quantize", kernels::LayoutRule::kAnyInput, Create, Places});
}

}  // namespace fuselage::int8::quantize::cuda
