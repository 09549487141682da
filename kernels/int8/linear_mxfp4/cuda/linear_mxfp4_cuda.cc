#include "kernels/int8/linear_mxfp4/cuda/linear_mxfp4_cuda.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/base/activation.h"
#include "kernels/core/registry.h"
#include "kernels/cuda/device_buffer.h"
#include "kernels/cuda/kernel.h"
#include "kernels/int8/linear_mxfp4/linear_mxfp4.h"

namespace fuselage::int8::linear_mxfp4::cuda {
namespace {

using ::fuselage::cuda::CeilDiv;
using ::fuselage::cuda::DeviceBuffer;

class LinearMxfp4 final : public kernels::BinaryKernel {
 public:
  LinearMxfp4(const kernels::KernelDesc& desc, DeviceBuffer weight, DeviceBuffer scale, DeviceBuffer bias,
              const LaunchParams& params)
      : BinaryKernel(desc),
        weight_(std::move(weight)),
        scale_(std::move(scale)),
        bias_(std::move(bias)),
        params_(params) {
    params_.weight = static_cast<const uint32_t*>(weight_.data());
    params_.scale = static_cast<const uint8_t*>(scale_.data());
    params_.bias = static_cast<const float*>(bias_.data());
    set_variant("cuda mma 16x8");
    set_weight_bytes(weight_.bytes() + scale_.bytes() + bias_.bytes());
  }

 private:
  void ComputeBinary(const void* x, const void* scales, void* y, const kernels::RunContext& context) const override {
    LaunchParams params = params_;
    params.x = static_cast<const uint8_t*>(x);
    params.x_scale = static_cast<const float*>(scales);
    params.y = static_cast<float*>(y);
    Launch(params, context.stream);
  }

  const DeviceBuffer weight_, scale_, bias_;
  LaunchParams params_;
};

template <typename T>
absl::StatusOr<DeviceBuffer> Upload(const std::vector<T>& values) {
  return DeviceBuffer::Upload(values.data(), static_cast<int64_t>(values.size() * sizeof(T)),
                              "the weights of int8.linear_mxfp4");
}

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc) {
  RETURN_IF_ERROR(linear_mxfp4::Create(desc).status());
  const Tensor &weight = *desc.ParameterOrNull("weight"), &scale = *desc.ParameterOrNull("weight_scale");
  const int64_t channels = weight.dim(0), depth = weight.dim(1), groups = CeilDiv(depth, kGroup);
  const int64_t rows = desc.input(1).num_elements(), tiles = std::max<int64_t>(1, CeilDiv(channels, kTileChannels));
  if (rows > std::numeric_limits<int32_t>::max() || tiles > 65535 || depth > (1 << 30)) {
    return absl::UnimplementedError(absl::StrCat("linear_mxfp4 on CUDA: ", rows, " rows, weight ",
                                                 ToString(weight.shape()),
                                                 ", wanted fewer than 2^31, and [524280, 2^30] at most"));
  }
  LaunchParams params;
  params.rows = static_cast<int32_t>(rows);
  params.channels = static_cast<int32_t>(channels);
  params.depth = static_cast<int32_t>(depth);
  params.groups = static_cast<int32_t>(groups);
  ASSIGN_OR_RETURN(const Activation activation, ParseActivation(desc.GetString("activation")));
  params.relu = activation.is_relu();
  params.activated = activation.function.has_value();
  if (params.activated) params.function = *activation.function;

  std::vector<uint32_t> words(tiles * groups * fuselage::cuda::kWarpSize);
  std::vector<uint8_t> scales(tiles * groups * kTileChannels, 127);
  std::vector<float> biases(tiles * kTileChannels);
  for (int64_t n = 0; n < channels; ++n) {
    const int64_t tile = n / kTileChannels, in_tile = n % kTileChannels;
    for (int64_t g = 0; g < groups; ++g) {
      scales[(tile * groups + g) * kTileChannels + in_tile] = scale.data<uint8_t>()[n * groups + g];
    }
    for (int64_t k = 0; k < depth; ++k) {
      const int64_t in_group = k % kGroup, quarter = in_group % 16 / 4, place = in_group / 16 * 4 + in_group % 4;
      words[(tile * groups + k / kGroup) * fuselage::cuda::kWarpSize + in_tile * 4 + quarter] |=
          (weight.data<uint8_t>()[n * depth + k] & 15u) << (4 * place);
    }
  }
  if (const Tensor* bias = desc.ParameterOrNull("bias"); bias != nullptr) {
    std::copy_n(bias->data<float>(), channels, biases.begin());
  }
  ASSIGN_OR_RETURN(DeviceBuffer weight_memory, Upload(words));
  ASSIGN_OR_RETURN(DeviceBuffer scale_memory, Upload(scales));
  ASSIGN_OR_RETURN(DeviceBuffer bias_memory, Upload(biases));
  return std::make_unique<LinearMxfp4>(desc, std::move(weight_memory), std::move(scale_memory), std::move(bias_memory),
                                       params);
}

}  // namespace

void RegisterCuda(kernels::KernelRegistry& registry) {
  registry.Register({"int8.linear_mxfp4", kernels::LayoutRule::kRowMajor, Create});
}

}  // namespace fuselage::int8::linear_mxfp4::cuda
