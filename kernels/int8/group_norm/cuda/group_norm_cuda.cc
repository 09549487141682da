#include "kernels/int8/group_norm/cuda/group_norm_cuda.h"

#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/base/activation.h"
#include "kernels/core/registry.h"
#include "kernels/core/requantize.h"
#include "kernels/cuda/device_buffer.h"
#include "kernels/int8/group_norm/group_norm.h"

namespace fuselage::int8::group_norm::cuda {
namespace {

using ::fuselage::cuda::DeviceBuffer;

class GroupNorm final : public kernels::UnaryKernel {
 public:
  GroupNorm(const kernels::KernelDesc& desc, DeviceBuffer weight, DeviceBuffer bias, const LaunchParams& params)
      : UnaryKernel(desc), weight_(std::move(weight)), bias_(std::move(bias)), params_(params) {
    params_.weight = static_cast<const float*>(weight_.data());
    params_.bias = static_cast<const float*>(bias_.data());
    set_variant("cuda");
    set_weight_bytes(weight_.bytes() + bias_.bytes());
  }

 private:
  void ComputeUnary(const void* x, void* y, const kernels::RunContext& context) const override {
    LaunchParams params = params_;
    params.x = static_cast<const uint8_t*>(x);
    params.y = static_cast<uint8_t*>(y);
    Launch(params, context.stream);
  }

  const DeviceBuffer weight_, bias_;
  LaunchParams params_;
};

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc) {
  ASSIGN_OR_RETURN(const Form form, FormOf(desc));
  const TensorType &x = desc.input(0), &y = desc.output();
  if (x.num_elements() > std::numeric_limits<int32_t>::max()) {
    return absl::UnimplementedError(absl::StrCat(desc.op, ": ", ToString(x), ", wanted fewer than 2^31 elements"));
  }
  LaunchParams params;
  params.images = static_cast<int32_t>(form.images);
  params.groups = static_cast<int32_t>(form.channels / form.group_channels);
  params.channels = static_cast<int32_t>(form.channels);
  params.pixels = static_cast<int32_t>(form.pixels);
  params.group_channels = static_cast<int32_t>(form.group_channels);
  (form.channels_last ? params.rows : params.channel_codes) = params.pixels;
  params.by_channel_codes = fuselage::cuda::MakeDivider(params.channel_codes);
  params.eps = form.eps;
  params.activated = form.function.has_value();
  if (params.activated) params.function = *form.function;
  const kernels::UnsignedForm from = kernels::UnsignedFormOf(x), to = kernels::UnsignedFormOf(y);
  params.x_flip = from.flip ^ 0x80;
  params.x_zero_point = from.zero_point - 128;
  params.x_scale = x.quant->scale();
  params.y_flip = to.flip;
  params.y_zero_point = to.zero_point;
  params.y_scale = y.quant->scale();
  ASSIGN_OR_RETURN(const Activation activation, ParseActivation(desc.GetString("activation")));
  const kernels::CodeRange range = kernels::CodeRangeOf(DType::kU8, to.zero_point, params.y_scale, activation);
  params.y_lo = range.lo;
  params.y_hi = range.hi;
  const auto upload = [&](absl::Span<const float> floats) {
    return DeviceBuffer::Upload(floats.data(), static_cast<int64_t>(floats.size() * sizeof(float)),
                                absl::StrCat("the parameters of ", desc.op));
  };
  ASSIGN_OR_RETURN(DeviceBuffer weight, upload(form.weight));
  ASSIGN_OR_RETURN(DeviceBuffer bias, upload(form.bias));
  return std::make_unique<GroupNorm>(desc, std::move(weight), std::move(bias), params);
}

}  // namespace

void RegisterCuda(kernels::KernelRegistry& registry) {
  for (const char* op : {"int8.group_norm", "int8.instance_norm"}) {
    registry.Register({op, kernels::LayoutRule::kSame, Create});
  }
}

}  // namespace fuselage::int8::group_norm::cuda
