#include "kernels/norm/cuda/norm_cuda.h"

#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/core/registry.h"
#include "kernels/core/requantize.h"
#include "kernels/cuda/device_buffer.h"
#include "kernels/int8/dequantize/dequantize.h"
#include "kernels/int8/norm/norm.h"
#include "kernels/int8/quantize/quantize.h"
#include "kernels/norm/norm.h"

namespace fuselage::norm::cuda {
namespace {

using ::fuselage::cuda::DeviceBuffer;

class Norm final : public kernels::Kernel {
 public:
  Norm(const kernels::KernelDesc& desc, DeviceBuffer weight, DeviceBuffer bias, const LaunchParams& params)
      : Kernel(desc), weight_(std::move(weight)), bias_(std::move(bias)), params_(params) {
    params_.weight = static_cast<const float*>(weight_.data());
    params_.bias = static_cast<const float*>(bias_.data());
    set_variant("cuda");
    set_weight_bytes(weight_.bytes() + bias_.bytes());
  }

 private:
  // A sum is the last of the results, the scales of rows are the second.
  void Compute(absl::Span<const kernels::ConstBuffer> in, absl::Span<const kernels::Buffer> out,
               const kernels::RunContext& context) const override {
    LaunchParams params = params_;
    const bool adds = in.size() > 1 && in[1].data != nullptr;
    if (inputs()[0]->dtype == DType::kF32) {
      params.x = static_cast<const float*>(in[0].data);
    } else {
      params.codes = static_cast<const uint8_t*>(in[0].data);
    }
    if (adds) {
      params.residual = static_cast<const float*>(in[1].data);
      params.sum = static_cast<float*>(out.back().data);
    }
    if (outputs()[0].dtype == DType::kF32) {
      params.y = static_cast<float*>(out[0].data);
    } else {
      params.y_codes = static_cast<uint8_t*>(out[0].data);
      if (!outputs()[0].quant) params.y_scales = static_cast<float*>(out[1].data);
    }
    Launch(params, context.stream);
  }

  const DeviceBuffer weight_, bias_;
  LaunchParams params_;
};

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc) {
  const bool quantized = absl::StartsWith(desc.op, "int8.");
  RETURN_IF_ERROR((quantized ? int8::norm::Create(desc) : norm::Create(desc)).status());
  const TensorType &x = desc.input(0), &y = desc.output();
  ASSIGN_OR_RETURN(const Rows rows, Rows::Of(desc, x, !absl::EndsWith(desc.op, "rms_norm")));
  if (x.num_elements() > std::numeric_limits<int32_t>::max()) {
    return absl::UnimplementedError(absl::StrCat(desc.op, ": ", ToString(x), ", wanted fewer than 2^31 elements"));
  }
  LaunchParams params;
  params.rows = static_cast<int32_t>(rows.count());
  params.columns = static_cast<int32_t>(rows.columns());
  params.centered = rows.block().centered;
  params.eps = rows.block().eps;
  params.inner = static_cast<int32_t>(rows.block().inner);
  params.parameters = static_cast<int32_t>(rows.weight().size());
  params.activated = rows.function().has_value();
  if (params.activated) params.function = *rows.function();
  params.min = rows.block().min;
  params.max = rows.block().max;
  if (x.dtype != DType::kF32) {
    const kernels::UnsignedForm form = kernels::UnsignedFormOf(x);
    params.x_flip = form.flip;
    params.x_zero_point = form.zero_point;
    params.x_scale = x.quant->scale();
  }
  if (y.quant) {
    const kernels::UnsignedForm form = kernels::UnsignedFormOf(y);
    params.y_flip = form.flip;
    params.y_zero_point = form.zero_point;
    params.y_scale = y.quant->scale();
  }
  const auto upload = [&](absl::Span<const float> floats) {
    return DeviceBuffer::Upload(floats.data(), static_cast<int64_t>(floats.size() * sizeof(float)),
                                absl::StrCat("the parameters of ", desc.op));
  };
  ASSIGN_OR_RETURN(DeviceBuffer weight, upload(rows.weight()));
  ASSIGN_OR_RETURN(DeviceBuffer bias, upload(rows.bias()));
  return std::make_unique<Norm>(desc, std::move(weight), std::move(bias), params);
}

}  // namespace

void RegisterCuda(kernels::KernelRegistry& registry) {
  for (const char* op : {"group_norm", "instance_norm", "int8.layer_norm", "int8.rms_norm", "layer_norm", "rms_norm"}) {
    registry.Register({op, kernels::LayoutRule::kRowMajor, Create});
  }
}

}  // namespace fuselage::norm::cuda
