#include "kernels/int8/quantize/cuda/quantize_cuda.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "kernels/core/registry.h"
#include "kernels/cuda/device_buffer.h"
#include "kernels/cuda/kernel.h"
#include "kernels/int8/quantize/quantize.h"

namespace fuselage::int8::quantize::cuda {
namespace {

using ::fuselage::cuda::CeilDiv;
using ::fuselage::cuda::CurrentDevice;
using ::fuselage::cuda::DeviceProperties;
using ::fuselage::cuda::MakeDivider;
using ::fuselage::cuda::MakeQuantizer;
using ::fuselage::cuda::Spread;
using ::fuselage::cuda::UnaryLaunch;

// Pixel distances only, and for images whose channels become a pixel's here.
absl::Status CheckPlacement(const kernels::KernelDesc& desc, const quantize::Params& params) {
  const kernels::Placement& placement = desc.output_placement;
  const TensorType& y = desc.output();
  if (placement.dense()) return absl::OkStatus();
  if (y.rank() == 4 && params.channels == y.shape[1] && placement.blocking == kernels::Blocking::kNone &&
      placement.halo == 0 && placement.pixel_bytes >= y.shape[1]) {
    return absl::OkStatus();
  }
  return absl::UnimplementedError(absl::StrCat("quantize on CUDA: ", ToString(desc.input(0)), " to ", ToString(y),
                                               " with ", kernels::PlacementText(placement)));
}

bool Places(const kernels::KernelDesc& desc) {
  const absl::StatusOr<quantize::Params> params = MakeParams(desc);
  return params.ok() && CheckPlacement(desc, *params).ok();
}

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc) {
  LaunchParams params;
  ASSIGN_OR_RETURN(params.quantize, MakeParams(desc));
  const quantize::Params& quantize = params.quantize;
  RETURN_IF_ERROR(CheckPlacement(desc, quantize));
  const int64_t pixel_bytes = desc.output_placement.dense() ? quantize.channels : desc.output_placement.pixel_bytes;
  const int64_t code_groups = CeilDiv(pixel_bytes, 4), pixel_groups = CeilDiv(quantize.pixels, 4);
  ASSIGN_OR_RETURN(const DeviceProperties device, CurrentDevice());
  ASSIGN_OR_RETURN(params.items, Spread(quantize.images * code_groups * pixel_groups, device, "quantize"));
  if (params.items.count > 0) {
    params.pixel_groups = static_cast<uint32_t>(pixel_groups);
    params.code_groups = static_cast<uint32_t>(code_groups);
    params.by_pixel_groups = MakeDivider(params.pixel_groups);
    params.by_code_groups = MakeDivider(params.code_groups);
  }
  params.quantizer = MakeQuantizer(quantize.scale, {quantize.zero_point, quantize.lo, quantize.hi}, quantize.flip);
  params.pixel_bytes = static_cast<int32_t>(pixel_bytes);
  return std::make_unique<UnaryLaunch<LaunchParams>>(desc, params, Launch);
}

}  // namespace

void RegisterCuda(kernels::KernelRegistry& registry) {
  registry.Register({"int8.quantize", kernels::LayoutRule::kAnyInput, Create, Places});
}

}  // namespace fuselage::int8::quantize::cuda
