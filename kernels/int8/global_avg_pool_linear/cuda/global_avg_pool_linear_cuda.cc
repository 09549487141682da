#include "kernels/int8/global_avg_pool_linear/cuda/global_avg_pool_linear_cuda.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "kernels/core/registry.h"
#include "kernels/cuda/kernel.h"
#include "kernels/int8/avg_pool2d/cuda/create.h"
#include "kernels/int8/global_avg_pool_linear/cuda/create.h"
#include "kernels/int8/global_avg_pool_linear/global_avg_pool_linear.h"
#include "kernels/int8/linear/cuda/create.h"

namespace fuselage::int8::global_avg_pool_linear::cuda {
namespace {

using ::fuselage::cuda::CeilDiv;
using ::fuselage::cuda::kWarpSize;

constexpr int64_t kMostSharedBytes = 48 << 10;
constexpr int64_t kMostImages = 65535;  // CUDA's limit of a grid's y.

class Fused final : public kernels::UnaryKernel {
 public:
  Fused(const kernels::KernelDesc& desc, linear::cuda::DeviceLayer layer, const LaunchParams& params)
      : UnaryKernel(desc), layer_(std::move(layer)), params_(params) {
    set_variant("cuda fused");
    set_weight_bytes(layer_.memory.bytes());
  }

 private:
  void ComputeUnary(const void* x, void* y, const kernels::RunContext& context) const override {
    LaunchParams params = params_;
    params.x = static_cast<const uint8_t*>(x);
    params.y = y;
    Launch(params, context.stream);
  }

  const linear::cuda::DeviceLayer layer_;
  const LaunchParams params_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc, const Options& options) {
  ASSIGN_OR_RETURN(const Parts parts, PartsOf(desc));
  ASSIGN_OR_RETURN(const avg_pool2d::Params pool, avg_pool2d::MakeParams(parts.pool));
  const Shape& shape = desc.input(0).shape;
  const int64_t images = shape[0], pixels = shape[2] * shape[3], depth = shape[1];
  const int64_t channel_blocks = CeilDiv(desc.output().shape.back(), kBlockChannels);
  // Too large for 32 bits is also too large for the one kernel.
  if (images <= kMostImages && images * pixels * depth <= options.fused_bytes / std::max<int64_t>(1, channel_blocks)) {
    ASSIGN_OR_RETURN(linear::cuda::DeviceLayer layer, linear::cuda::DeviceLayer::Upload(parts.linear));
    LaunchParams params;
    params.mean = avg_pool2d::cuda::MeanOf(pool);
    params.layer = layer.layer;
    params.means_are_signed = parts.linear.input(0).dtype == DType::kI8;
    params.images = static_cast<int32_t>(images);
    params.pixels = static_cast<int32_t>(pixels);
    params.groups = static_cast<int32_t>(CeilDiv(depth, 16));
    // One work item a thread.
    const int64_t threads_of_group = kBlockWarps * kWarpSize / std::max(1, params.groups);
    params.slices = static_cast<int32_t>(std::max<int64_t>(1, std::min(threads_of_group, pixels)));
    if (SharedBytes(params) <= kMostSharedBytes) return std::make_unique<Fused>(desc, std::move(layer), params);
  }
  return CreateOfParts(desc, avg_pool2d::cuda::Create,
                       [](const kernels::KernelDesc& linear) { return linear::cuda::Create(linear); });
}

void RegisterCuda(kernels::KernelRegistry& registry) {
  registry.Register({"int8.global_avg_pool_linear", kernels::LayoutRule::kNhwc,
                     [](const kernels::KernelDesc& desc) { return Create(desc); }});
}

}  // namespace fuselage::int8::global_avg_pool_linear::cuda
