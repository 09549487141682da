#include "kernels/int8/linear_groups/cuda/linear_groups_cuda.h"

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
#include "kernels/int8/linear_groups/linear_groups.h"

namespace fuselage::int8::linear_groups::cuda {
namespace {

using ::fuselage::cuda::CeilDiv;
using ::fuselage::cuda::DeviceBuffer;

class LinearGroups final : public kernels::BinaryKernel {
 public:
  LinearGroups(const kernels::KernelDesc& desc, DeviceBuffer weight, DeviceBuffer scale, DeviceBuffer least,
               DeviceBuffer bias, const LaunchParams& params)
      : BinaryKernel(desc),
        weight_(std::move(weight)),
        scale_(std::move(scale)),
        least_(std::move(least)),
        bias_(std::move(bias)),
        params_(params) {
    params_.weight = static_cast<const uint32_t*>(weight_.data());
    params_.scale = scale_.data();
    params_.least = static_cast<const int8_t*>(least_.data());
    params_.bias = static_cast<const float*>(bias_.data());
    set_variant("cuda mma 16x8");
    set_weight_bytes(weight_.bytes() + scale_.bytes() + least_.bytes() + bias_.bytes());
  }

 private:
  void ComputeBinary(const void* x, const void* scales, void* y, const kernels::RunContext& context) const override {
    LaunchParams params = params_;
    params.x = static_cast<const uint8_t*>(x);
    params.x_scale = static_cast<const float*>(scales);
    params.y = static_cast<float*>(y);
    Launch(params, context.stream);
  }

  const DeviceBuffer weight_, scale_, least_, bias_;
  LaunchParams params_;
};

template <typename T>
absl::StatusOr<DeviceBuffer> Upload(const std::vector<T>& values) {
  return DeviceBuffer::Upload(values.data(), static_cast<int64_t>(values.size() * sizeof(T)),
                              "the weights of int8.linear_groups");
}

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc) {
  RETURN_IF_ERROR(linear_groups::Create(desc).status());
  const Tensor &weight = *desc.ParameterOrNull("weight"), &scale = *desc.ParameterOrNull("weight_scale");
  const int64_t group = desc.GetInt("group_size"), units = group / kUnit;
  const Format format = FormatOf(weight, group);
  if (format == Format::kInt8) {
    return absl::UnimplementedError(absl::StrCat("linear_groups on CUDA: weight ", ToString(weight.type()), " by ",
                                                 group, ", wanted MXFP4, or codes of four bits"));
  }
  const int64_t channels = weight.dim(0), depth = weight.dim(1), groups = CeilDiv(depth, group);
  const int64_t rows = desc.input(1).num_elements(), tiles = std::max<int64_t>(1, CeilDiv(channels, kTileChannels));
  if (rows > std::numeric_limits<int32_t>::max() || tiles > 65535 || depth > (1 << 30)) {
    return absl::UnimplementedError(absl::StrCat("linear_groups on CUDA: ", rows, " rows, weight ",
                                                 ToString(weight.shape()),
                                                 ", wanted fewer than 2^31, and [524280, 2^30] at most"));
  }
  LaunchParams params;
  params.rows = static_cast<int32_t>(rows);
  params.channels = static_cast<int32_t>(channels);
  params.depth = static_cast<int32_t>(depth);
  params.groups = static_cast<int32_t>(groups);
  params.units = static_cast<int32_t>(units);
  params.int4 = format == Format::kInt4;
  ASSIGN_OR_RETURN(const Activation activation, ParseActivation(desc.GetString("activation")));
  params.relu = activation.is_relu();
  params.activated = activation.function.has_value();
  if (params.activated) params.function = *activation.function;

  const std::vector<int8_t> least_of_groups = params.int4 ? LeastOfGroups(weight, group) : std::vector<int8_t>();
  std::vector<uint32_t> words(tiles * groups * units * fuselage::cuda::kWarpSize);
  std::vector<uint8_t> exponents(params.int4 ? 0 : tiles * groups * kTileChannels, 127);
  std::vector<float> factors(params.int4 ? tiles * groups * kTileChannels : 0);
  std::vector<int8_t> leasts(least_of_groups.empty() ? 0 : tiles * groups * kTileChannels);
  std::vector<float> biases(tiles * kTileChannels);
  for (int64_t n = 0; n < channels; ++n) {
    const int64_t tile = n / kTileChannels, in_tile = n % kTileChannels;
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t to = (tile * groups + g) * kTileChannels + in_tile, from = n * groups + g;
      if (params.int4) {
        factors[to] = scale.data<float>()[from];
      } else {
        exponents[to] = scale.data<uint8_t>()[from];
      }
      if (!leasts.empty()) leasts[to] = least_of_groups[from];
    }
    for (int64_t k = 0; k < depth; ++k) {
      const int64_t in_group = k % kUnit, quarter = in_group % 16 / 4, place = in_group / 16 * 4 + in_group % 4;
      uint32_t code = static_cast<const uint8_t*>(weight.raw_data())[n * depth + k];
      if (params.int4) code -= leasts.empty() ? LeastOf(format) : least_of_groups[n * groups + k / group];
      words[(tile * groups * units + k / kUnit) * fuselage::cuda::kWarpSize + in_tile * 4 + quarter] |= (code & 15u)
                                                                                                        << (4 * place);
    }
  }
  if (const Tensor* bias = desc.ParameterOrNull("bias"); bias != nullptr) {
    std::copy_n(bias->data<float>(), channels, biases.begin());
  }
  ASSIGN_OR_RETURN(DeviceBuffer weight_memory, Upload(words));
  ASSIGN_OR_RETURN(DeviceBuffer scale_memory, params.int4 ? Upload(factors) : Upload(exponents));
  DeviceBuffer least_memory;
  if (!leasts.empty()) {
    ASSIGN_OR_RETURN(least_memory, Upload(leasts));
  }
  ASSIGN_OR_RETURN(DeviceBuffer bias_memory, Upload(biases));
  return std::make_unique<LinearGroups>(desc, std::move(weight_memory), std::move(scale_memory),
                                        std::move(least_memory), std::move(bias_memory), params);
}

}  // namespace

void RegisterCuda(kernels::KernelRegistry& registry) {
  registry.Register({"int8.linear_groups", kernels::LayoutRule::kRowMajor, Create});
}

}  // namespace fuselage::int8::linear_groups::cuda
