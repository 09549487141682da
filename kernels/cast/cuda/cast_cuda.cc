#include "kernels/cast/cuda/cast_cuda.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "kernels/core/registry.h"
#include "kernels/cuda/device_buffer.h"
#include "kernels/cuda/kernel.h"

namespace fuselage::cast::cuda {
namespace {

using ::fuselage::cuda::CeilDiv;
using ::fuselage::cuda::CurrentDevice;
using ::fuselage::cuda::DeviceProperties;
using ::fuselage::cuda::Spread;
using ::fuselage::cuda::UnaryLaunch;

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc) {
  const TensorType &x = desc.input(0), &y = desc.output();
  const bool to_half = x.dtype == DType::kF32 && y.dtype == DType::kF16;
  if (!to_half && !(x.dtype == DType::kF16 && y.dtype == DType::kF32)) {
    return absl::UnimplementedError(
        absl::StrCat("to ", ToString(y), " from ", ToString(x), ", wanted f32 and f16 on CUDA"));
  }
  LaunchParams params;
  params.elements = y.num_elements();
  params.to_half = to_half;
  ASSIGN_OR_RETURN(const DeviceProperties device, CurrentDevice());
  ASSIGN_OR_RETURN(params.items, Spread(CeilDiv(params.elements, 4), device, "a cast"));
  return std::make_unique<UnaryLaunch<LaunchParams>>(desc, params, Launch);
}

}  // namespace

void RegisterCuda(kernels::KernelRegistry& registry) { registry.Register({"to", kernels::LayoutRule::kSame, Create}); }

}  // namespace fuselage::cast::cuda
