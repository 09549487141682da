#include "kernels/int8/linear_mxfp4/linear_mxfp4.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/base/activation.h"

namespace fuselage::int8::linear_mxfp4 {
namespace {

using kernels::Isa;
using kernels::KernelDesc;

constexpr Variant kVariants[] = {
    {"scalar", Isa::kScalar, 1, scalar::Run, nullptr},
    {"avx2", Isa::kAvx2, 8, avx2::Run, kernels::avx2::Activate},
    {"avx512_vnni", Isa::kAvx512Vnni, 16, avx512_vnni::Run, kernels::avx512_vnni::Activate},
};

// A task's weights stay in the first cache while its rows pass.
constexpr int64_t kTaskRows = 64, kTaskChannels = 64;

// E8M0 codes whose half is a normal float.
constexpr uint8_t kLeastScale = 2, kGreatestScale = 254;

int64_t RoundUp(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

class LinearMxfp4 : public kernels::Kernel {
 public:
  LinearMxfp4(const KernelDesc& desc, const Activation& activation, const Variant& variant)
      : Kernel(desc), variant_(variant), relu_(activation.is_relu()), function_(activation.function) {
    const Tensor& weight = *desc.ParameterOrNull("weight");
    depth_ = weight.dim(1);
    params_.channels = weight.dim(0);
    params_.groups = (depth_ + kGroup - 1) / kGroup;
    rows_ = desc.input(1).num_elements();
    const auto layout = [&](const TensorType& type) {
      return absl::StrCat("mxfp4 ", variant.block, " ", ToString(type));
    };
    weight_ = desc.Packed("weight", layout(WeightType()), [&] { return PackedWeight(weight); });
    scale_ = desc.Packed("weight_scale", layout(ScaleType()),
                         [&] { return PackedScale(*desc.ParameterOrNull("weight_scale")); });
    bias_.resize(RoundUp(params_.channels, variant.block));
    if (const Tensor* bias = desc.ParameterOrNull("bias"); bias != nullptr) {
      std::copy_n(bias->data<float>(), params_.channels, bias_.begin());
    }
    params_.weight = weight_->data<uint8_t>();
    params_.scale = scale_->data<uint8_t>();
    params_.bias = bias_.data();
    sums_ = RoundUp(rows_ * params_.groups * kGroup, 64);
    set_variant(variant.name);
    set_scratch_bytes(sums_ + rows_ * params_.groups * int64_t{sizeof(int32_t)});
    set_weight_bytes(static_cast<int64_t>(bias_.size() * sizeof(float)), {weight_, scale_});
  }

 private:
  int64_t padded_channels() const { return RoundUp(params_.channels, variant_.block); }
  TensorType WeightType() const {
    return {DType::kU8, {padded_channels() * params_.groups * kGroup / 2}, std::nullopt, Layout::kRowMajor};
  }
  TensorType ScaleType() const {
    return {DType::kU8, {padded_channels() * params_.groups}, std::nullopt, Layout::kRowMajor};
  }

  Tensor PackedWeight(const Tensor& weight) const {
    const int64_t block = variant_.block, block_bytes = params_.groups * kGroup / 2 * block;
    Tensor packed(WeightType());
    const uint8_t* from = weight.data<uint8_t>();
    for (int64_t n = 0; n < params_.channels; ++n) {
      uint8_t* to = packed.data<uint8_t>() + n / block * block_bytes + n % block * 4;
      for (int64_t k = 0; k < depth_; ++k, ++from) {
        uint8_t& byte = to[k / 8 * 4 * block + k % 4];
        byte = static_cast<uint8_t>(byte | (*from & 15) << (k % 8 < 4 ? 0 : 4));
      }
    }
    return packed;
  }

  Tensor PackedScale(const Tensor& scale) const {
    const int64_t block = variant_.block, groups = params_.groups;
    Tensor packed(ScaleType());
    std::memset(packed.data<uint8_t>(), kLeastScale, packed.byte_size());
    for (int64_t n = 0; n < params_.channels; ++n) {
      for (int64_t g = 0; g < groups; ++g) {
        packed.data<uint8_t>()[(n / block * groups + g) * block + n % block] = scale.data<uint8_t>()[n * groups + g];
      }
    }
    return packed;
  }

  void Compute(absl::Span<const kernels::ConstBuffer> inputs, absl::Span<const kernels::Buffer> outputs,
               const kernels::RunContext& context) const override {
    int8_t* packed = static_cast<int8_t*>(context.scratch.data);
    int32_t* sums = reinterpret_cast<int32_t*>(packed + sums_);
    kernels::ForRanges(*context.parallel, rows_, kTaskRows, [&](int64_t begin, int64_t end) {
      PackRows(static_cast<const int8_t*>(inputs[0].data), begin, end, packed, sums);
    });
    Params params = params_;
    params.x = packed;
    params.x_sums = sums;
    params.x_scale = static_cast<const float*>(inputs[1].data);
    params.y = static_cast<float*>(outputs[0].data);
    const int64_t row_tasks = (rows_ + kTaskRows - 1) / kTaskRows;
    const int64_t channel_tasks = (params.channels + kTaskChannels - 1) / kTaskChannels;
    context.parallel->For(static_cast<int>(row_tasks * channel_tasks), [&](int task, int) {
      const int64_t row = task % row_tasks * kTaskRows, channel = task / row_tasks * kTaskChannels;
      const Range range = {row, std::min(rows_, row + kTaskRows), channel,
                           std::min(params.channels, channel + kTaskChannels)};
      variant_.run(params, range);
      Activate(range, params.y);
    });
  }

  void PackRows(const int8_t* x, int64_t begin, int64_t end, int8_t* packed, int32_t* sums) const {
    const int64_t padded = params_.groups * kGroup;
    for (int64_t row = begin; row < end; ++row) {
      int8_t* to = packed + row * padded;
      std::memcpy(to, x + row * depth_, depth_);
      std::memset(to + depth_, 0, padded - depth_);
      for (int64_t g = 0; g < params_.groups; ++g) {
        int32_t sum = 0;
        for (int64_t k = 0; k < kGroup; ++k) sum += to[g * kGroup + k];
        sums[row * params_.groups + g] = kOffset * sum;
      }
    }
  }

  void Activate(const Range& range, float* y) const {
    if (!relu_ && !function_) return;
    for (int64_t row = range.row_begin; row < range.row_end; ++row) {
      float* values = y + row * params_.channels + range.channel_begin;
      const int64_t n = range.channel_end - range.channel_begin;
      if (relu_) {
        for (int64_t i = 0; i < n; ++i) values[i] = values[i] > 0 ? values[i] : 0.0f;
        continue;
      }
      const int64_t whole = variant_.activate == nullptr ? 0 : n - n % kernels::kActivatedTogether;
      if (whole > 0) variant_.activate(*function_, values, whole);
      for (int64_t i = whole; i < n; ++i) values[i] = elementwise::Activated(*function_, values[i]);
    }
  }

  const Variant variant_;
  const bool relu_;
  const std::optional<ElementwiseInstruction> function_;  // An activation that is no clamp.
  Params params_;
  int64_t rows_ = 0, depth_ = 0;
  int64_t sums_ = 0;  // Where x_sums is in scratch memory, behind x.
  std::shared_ptr<const Tensor> weight_, scale_;
  std::vector<float> bias_;
};

absl::Status CheckOperands(const KernelDesc& desc) {
  const Tensor *weight = desc.ParameterOrNull("weight"), *scale = desc.ParameterOrNull("weight_scale");
  if (!desc.has_input(0) || !desc.has_input(1) || weight == nullptr || scale == nullptr) {
    return absl::InvalidArgumentError("linear_mxfp4: wanted codes, their scales, constant weight and weight_scale");
  }
  const TensorType &x = desc.input(0), &y = desc.output();
  const int64_t depth = weight->rank() == 2 ? weight->dim(1) : 0;
  const bool fits = depth > 0 && x.dtype == DType::kI8 && !x.quant && x.rank() > 0 && x.shape.back() == depth &&
                    desc.input(1).num_elements() * depth == x.num_elements() &&
                    y.num_elements() * depth == x.num_elements() * weight->dim(0) &&
                    scale->shape() == Shape{weight->dim(0), (depth + kGroup - 1) / kGroup};
  if (!fits) {
    return absl::UnimplementedError(
        absl::StrCat("linear_mxfp4: input ", ToString(x), ", scales ", ToString(desc.input(1)), ", weight ",
                     ToString(weight->shape()), ", weight_scale ", ToString(scale->shape()), ", output ", ToString(y),
                     ", wanted [..., K], [..., 1], [N, K], [N, ceil(K / 32)] and [..., N], K not 0"));
  }
  for (int64_t i = 0; i < scale->num_elements(); ++i) {
    const int code = scale->data<uint8_t>()[i];
    if (code >= kLeastScale && code <= kGreatestScale) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("output channel ", i / scale->dim(1), ": weight_scale is ", code, ", wanted one in [2, 254]"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Span<const Variant> Variants() { return kVariants; }

absl::StatusOr<std::unique_ptr<kernels::Kernel>> CreateVariant(const KernelDesc& desc, const Variant& variant) {
  RETURN_IF_ERROR(CheckOperands(desc));
  ASSIGN_OR_RETURN(const Activation activation, ParseActivation(desc.GetString("activation")));
  if (activation.is_clamp() && !activation.is_none() && !activation.is_relu()) {
    return absl::UnimplementedError(absl::StrCat(ToString(activation), " of a float result"));
  }
  return std::make_unique<LinearMxfp4>(desc, activation, variant);
}

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const KernelDesc& desc) {
  return CreateVariant(desc, kernels::BestVariant(Variants(), desc.isa));
}

void Register(kernels::KernelRegistry& registry) {
  registry.Register({"int8.linear_mxfp4", kernels::LayoutRule::kRowMajor, Create});
}

void scalar::Run(const Params& p, const Range& range) {
  for (int64_t row = range.row_begin; row < range.row_end; ++row) {
    const int8_t* x = p.x + row * p.groups * kGroup;
    for (int64_t n = range.channel_begin; n < range.channel_end; ++n) {
      const uint8_t* weight = p.weight + n * p.groups * kGroup / 2;
      float t = 0;
      for (int64_t g = 0; g < p.groups; ++g) {
        int32_t sum = -p.x_sums[row * p.groups + g];
        for (int64_t k = 0; k < kGroup; ++k) {
          const uint8_t byte = weight[(g * kGroup + k) / 8 * 4 + k % 4];
          sum += x[g * kGroup + k] * kWeights[k % 8 < 4 ? byte & 15 : byte >> 4];
        }
        t = std::fma(static_cast<float>(sum), std::ldexp(1.0f, p.scale[n * p.groups + g] - 128), t);
      }
      p.y[row * p.channels + n] = std::fma(t, p.x_scale[row], p.bias[n]);
    }
  }
}

}  // namespace fuselage::int8::linear_mxfp4
