#include "kernels/int8/lookup/cuda/lookup_cuda.h"

#include <memory>
#include <utility>

#include "kernels/core/registry.h"
#include "kernels/cuda/device_buffer.h"
#include "kernels/cuda/kernel.h"
#include "kernels/int8/lookup/lookup.h"
#include "kernels/int8/quantize/cuda/pixel_groups_of.h"

namespace fuselage::int8::lookup::cuda {
namespace {

using ::fuselage::cuda::DeviceBuffer;
using ::fuselage::cuda::UnaryLaunch;

class Lookup final : public kernels::UnaryKernel {
 public:
  Lookup(const kernels::KernelDesc& desc, const LaunchParams& params, DeviceBuffer tables)
      : UnaryKernel(desc), params_(params), tables_(std::move(tables)) {
    params_.tables = static_cast<const uint8_t*>(tables_.data());
    set_variant("cuda");
    set_weight_bytes(tables_.bytes());
  }

 private:
  void ComputeUnary(const void* x, void* y, const kernels::RunContext& context) const override {
    LaunchParams params = params_;
    params.x = static_cast<const uint8_t*>(x);
    params.y = static_cast<uint8_t*>(y);
    Launch(params, context.stream);
  }

  LaunchParams params_;
  const DeviceBuffer tables_;
};

bool Places(const kernels::KernelDesc& desc) {
  return MakeParams(desc).ok() && quantize::cuda::CheckPixelPlacement(desc).ok();
}

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc) {
  LaunchParams params;
  ASSIGN_OR_RETURN(params.lookup, MakeParams(desc));
  const lookup::Params& lookup = params.lookup;
  RETURN_IF_ERROR(quantize::cuda::CheckPixelPlacement(desc));
  ASSIGN_OR_RETURN(const fuselage::cuda::DeviceProperties device, fuselage::cuda::CurrentDevice());
  ASSIGN_OR_RETURN(params.groups,
                   quantize::cuda::PixelGroupsOf(desc, lookup.images, lookup.channels, lookup.pixels, device));
  params.padding = static_cast<uint8_t>(desc.output().quant->zero_point());
  const Tensor& tables = *desc.ParameterOrNull("table");
  ASSIGN_OR_RETURN(DeviceBuffer buffer,
                   DeviceBuffer::Upload(tables.raw_data(), tables.byte_size(), "the tables of int8.lookup"));
  return std::make_unique<Lookup>(desc, params, std::move(buffer));
}

}  // namespace

void RegisterCuda(kernels::KernelRegistry& registry) {
  registry.Register({"int8.lookup", kernels::LayoutRule::kAnyInput, Create, Places});
}

}  // namespace fuselage::int8::lookup::cuda
