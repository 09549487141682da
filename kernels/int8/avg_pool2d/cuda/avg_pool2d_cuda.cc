#include "kernels/int8/avg_pool2d/cuda/avg_pool2d_cuda.h"

#include <algorithm>

#include "kernels/core/registry.h"
#include "kernels/cuda/device_buffer.h"
#include "kernels/cuda/kernel.h"
#include "kernels/int8/avg_pool2d/cuda/create.h"

namespace fuselage::int8::avg_pool2d::cuda {
namespace {

using ::fuselage::cuda::CeilDiv;
using ::fuselage::cuda::CurrentDevice;
using ::fuselage::cuda::DeviceProperties;
using ::fuselage::cuda::Items;
using ::fuselage::cuda::kItemWarps;
using ::fuselage::cuda::kWarpSize;
using ::fuselage::cuda::NarrowWindow;
using ::fuselage::cuda::Spread;
using ::fuselage::cuda::UnaryLaunch;

// So that a thread has four taps at least.
int Slices(const kernels::PoolWindow& window) {
  int64_t taps = 1;
  for (const kernels::PoolWindow::Axis& axis : window.axes) taps *= std::min(axis.kernel, axis.in);
  int slices = 1;
  while (slices < kWarpSize && taps / (2 * slices) >= 4) slices *= 2;
  return slices;
}

}  // namespace

Mean MeanOf(const avg_pool2d::Params& params) {
  return {params.flip_x,  params.flip_y,  params.zero_point_x, params.zero_point_y,
          params.scale_x, params.scale_y, params.lo,           params.hi};
}

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc) {
  ASSIGN_OR_RETURN(const avg_pool2d::Params pool, MakeParams(desc));
  LaunchParams params;
  ASSIGN_OR_RETURN(params.window, NarrowWindow(pool.window));
  params.mean = MeanOf(pool);
  params.count_include_pad = pool.count_include_pad;
  params.slices = Slices(pool.window);
  const int64_t groups = CeilDiv(pool.window.channels, 16);
  const int64_t items = pool.window.batch * pool.window.axes[0].out * pool.window.axes[1].out * groups;
  ASSIGN_OR_RETURN(const DeviceProperties device, CurrentDevice());
  // Threads of kBlockWarps warps, each an item's slice.
  ASSIGN_OR_RETURN(const Items spread, Spread(items * params.slices, device, "average pool"));
  params.items = static_cast<uint32_t>(items);
  params.channel_groups = static_cast<uint32_t>(groups);
  params.blocks = spread.blocks * (kItemWarps / kBlockWarps);
  return std::make_unique<UnaryLaunch<LaunchParams>>(desc, params, Launch);
}

void RegisterCuda(kernels::KernelRegistry& registry) {
  registry.Register({"int8.avg_pool2d", kernels::LayoutRule::kNhwc, Create});
  registry.Register({"int8.global_avg_pool", kernels::LayoutRule::kNhwc, Create});
}

}  // namespace fuselage::int8::avg_pool2d::cuda
