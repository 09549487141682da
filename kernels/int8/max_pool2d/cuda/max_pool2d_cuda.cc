#include "kernels/int8/max_pool2d/cuda/max_pool2d_cuda.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "kernels/core/registry.h"
#include "kernels/cuda/device_buffer.h"
#include "kernels/cuda/kernel.h"
#include "kernels/int8/max_pool2d/max_pool2d.h"

namespace fuselage::int8::max_pool2d::cuda {
namespace {

using ::fuselage::cuda::CeilDiv;
using ::fuselage::cuda::CurrentDevice;
using ::fuselage::cuda::DeviceProperties;
using ::fuselage::cuda::NarrowWindow;
using ::fuselage::cuda::Spread;
using ::fuselage::cuda::UnaryLaunch;

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc) {
  ASSIGN_OR_RETURN(const max_pool2d::Params pool, MakeParams(desc));
  if (!desc.output_placement.dense()) {
    return absl::UnimplementedError(
        absl::StrCat("max pool on CUDA: an output with ", kernels::PlacementText(desc.output_placement)));
  }
  LaunchParams params;
  ASSIGN_OR_RETURN(params.window, NarrowWindow(pool.window));
  const int64_t groups = CeilDiv(pool.window.channels, 16);
  ASSIGN_OR_RETURN(const DeviceProperties device, CurrentDevice());
  ASSIGN_OR_RETURN(params.items, Spread(pool.window.batch * pool.window.axes[0].out * pool.window.axes[1].out * groups,
                                        device, "max pool"));
  params.channel_groups = static_cast<uint32_t>(groups);
  params.flip = pool.is_signed ? 0x80 : 0;
  return std::make_unique<UnaryLaunch<LaunchParams>>(desc, params, Launch);
}

}  // namespace

void RegisterCuda(kernels::KernelRegistry& registry) {
  registry.Register({"int8.max_pool2d", kernels::LayoutRule::kNhwc, Create});
}

}  // namespace fuselage::int8::max_pool2d::cuda
