#include "kernels/int8/linear_groups/linear_groups.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/base/activation.h"

namespace fuselage::int8::linear_groups {
namespace {

using kernels::Isa;
using kernels::KernelDesc;

constexpr Variant kVariants[] = {
    {"scalar", Isa::kScalar, 1, 0, scalar::Run, nullptr},
    {"avx2", Isa::kAvx2, 16, 0x80, avx2::Run, kernels::avx2::Activate},
    {"avx512_vnni", Isa::kAvx512Vnni, 16, 0, avx512_vnni::Run, kernels::avx512_vnni::Activate},
};

// E8M0 codes whose half is a normal float.
constexpr uint8_t kLeastScale = 2, kGreatestScale = 254;

int64_t RoundUp(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

class LinearGroups : public kernels::Kernel {
 public:
  LinearGroups(const KernelDesc& desc, const Activation& activation, const Variant& variant)
      : Kernel(desc), variant_(variant), relu_(activation.is_relu()), function_(activation.function) {
    const Tensor &weight = *desc.ParameterOrNull("weight"), &scale = *desc.ParameterOrNull("weight_scale");
    const int64_t group = desc.GetInt("group_size");
    depth_ = weight.dim(1);
    params_.format = FormatOf(weight, group);
    params_.channels = weight.dim(0);
    params_.groups = (depth_ + group - 1) / group;
    params_.units = group / kUnit;
    params_.unit_bytes = params_.format == Format::kInt8 ? kUnit : kUnit / 2;
    params_.depth = params_.groups * group;
    params_.rows = desc.input(1).num_elements();
    const auto layout = [&](const TensorType& type) {
      return absl::StrCat("unsigned, groups of ", group, " ", variant.block, " ", ToString(type));
    };
    std::vector<int8_t> least;
    if (params_.format == Format::kInt4) least = LeastOfGroups(weight, group);
    weight_ = desc.Packed("weight", layout(WeightType()), [&] { return PackedWeight(weight, least); });
    scale_ = desc.Packed("weight_scale", layout(ScaleType()), [&] { return PackedScale(scale); });
    least_.resize(least.empty() ? 0 : padded_channels() * params_.groups);
    PackGroups(least.data(), least_.empty() ? 0 : params_.channels, least_.data());
    bias_.resize(RoundUp(params_.channels, variant.block));
    if (const Tensor* bias = desc.ParameterOrNull("bias"); bias != nullptr) {
      std::copy_n(bias->data<float>(), params_.channels, bias_.begin());
    }
    params_.weight = weight_->data<uint8_t>();
    params_.scale = scale_->raw_data();
    params_.least = least_.empty() ? nullptr : least_.data();
    params_.bias = bias_.data();
    sums_ = RoundUp(params_.rows * params_.depth, 64);
    set_variant(variant.name);
    set_scratch_bytes(sums_ + params_.rows * params_.groups * int64_t{sizeof(int32_t)});
    set_weight_bytes(static_cast<int64_t>(bias_.size() * sizeof(float) + least_.size()), {weight_, scale_});
  }

 private:
  int64_t padded_channels() const { return RoundUp(params_.channels, variant_.block); }
  bool is_mxfp4() const { return params_.format == Format::kMxfp4; }
  TensorType WeightType() const {
    const int64_t bytes = padded_channels() * params_.groups * params_.units * params_.unit_bytes;
    return {DType::kU8, {bytes}, std::nullopt, Layout::kRowMajor};
  }
  TensorType ScaleType() const {
    return {
        is_mxfp4() ? DType::kU8 : DType::kF32, {padded_channels() * params_.groups}, std::nullopt, Layout::kRowMajor};
  }

  Tensor PackedWeight(const Tensor& weight, const std::vector<int8_t>& least) const {
    const int64_t block = variant_.block, block_bytes = params_.groups * params_.units * params_.unit_bytes * block;
    Tensor packed(WeightType());
    const uint8_t* from = static_cast<const uint8_t*>(weight.raw_data());
    for (int64_t n = 0; n < params_.channels; ++n) {
      uint8_t* to = packed.data<uint8_t>() + n / block * block_bytes + n % block * 4;
      for (int64_t k = 0; k < depth_; ++k, ++from) {
        int code = *from;
        if (!is_mxfp4()) {
          const int64_t group = n * params_.groups + k / (params_.units * kUnit);
          code = static_cast<int8_t>(code) - (least.empty() ? LeastOf(params_.format) : least[group]);
        }
        if (params_.format == Format::kInt8) {
          to[k / 4 * 4 * block + k % 4] = static_cast<uint8_t>(code);
          continue;
        }
        uint8_t& byte = to[k / 8 * 4 * block + k % 4];
        byte = static_cast<uint8_t>(byte | (code & 15) << (k % 8 < 4 ? 0 : 4));
      }
    }
    return packed;
  }

  // From [channels][groups] to [N / block][groups][block].
  template <typename T>
  void PackGroups(const T* from, int64_t channels, T* to) const {
    const int64_t block = variant_.block, groups = params_.groups;
    for (int64_t n = 0; n < channels; ++n) {
      for (int64_t g = 0; g < groups; ++g) to[(n / block * groups + g) * block + n % block] = from[n * groups + g];
    }
  }
  Tensor PackedScale(const Tensor& scale) const {
    Tensor packed(ScaleType());
    if (is_mxfp4()) {
      std::fill_n(packed.data<uint8_t>(), packed.num_elements(), kLeastScale);  // Of channels that do not exist.
      PackGroups(scale.data<uint8_t>(), params_.channels, packed.data<uint8_t>());
    } else {
      PackGroups(scale.data<float>(), params_.channels, packed.data<float>());
    }
    return packed;
  }

  void Compute(absl::Span<const kernels::ConstBuffer> inputs, absl::Span<const kernels::Buffer> outputs,
               const kernels::RunContext& context) const override {
    int8_t* packed = static_cast<int8_t*>(context.scratch.data);
    int32_t* sums = reinterpret_cast<int32_t*>(packed + sums_);
    kernels::ForRanges(*context.parallel, params_.rows, kTaskRows, [&](int64_t begin, int64_t end) {
      PackRows(static_cast<const int8_t*>(inputs[0].data), begin, end, packed, sums);
    });
    Params params = params_;
    params.x = packed;
    params.x_sums = sums;
    params.x_scale = static_cast<const float*>(inputs[1].data);
    params.y = static_cast<float*>(outputs[0].data);
    const int64_t row_tasks = (params_.rows + kTaskRows - 1) / kTaskRows;
    const int64_t channel_tasks = (params.channels + kTaskChannels - 1) / kTaskChannels;
    context.parallel->For(static_cast<int>(row_tasks * channel_tasks), [&](int task, int) {
      const int64_t row = task % row_tasks * kTaskRows, channel = task / row_tasks * kTaskChannels;
      const Range range = {row, std::min(params_.rows, row + kTaskRows), channel,
                           std::min(params.channels, channel + kTaskChannels)};
      variant_.run(params, range);
      Activate(range, params.y);
    });
  }

  void PackRows(const int8_t* x, int64_t begin, int64_t end, int8_t* packed, int32_t* sums) const {
    const int64_t padded = params_.depth, group = params_.units * kUnit;
    for (int64_t row = begin; row < end; ++row) {
      int8_t* to = packed + row * padded;
      std::memcpy(to, x + row * depth_, depth_);
      std::memset(to + depth_, 0, padded - depth_);
      for (int64_t g = 0; g < params_.groups; ++g) {
        int32_t sum = 0;  // 128 * 128 in magnitude at most.
        for (int64_t k = 0; k < group; ++k) sum += to[g * group + k];
        sums[row * params_.groups + g] = sum & 0xffff;
      }
      if (params_.rows == 1 || variant_.flip == 0) continue;
      for (int64_t k = 0; k < padded; ++k) to[k] = static_cast<int8_t>(to[k] ^ variant_.flip);
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
  const std::optional<ElementwiseInstruction> function_;  // Then there is no clamp.
  Params params_;
  int64_t depth_ = 0;
  int64_t sums_ = 0;  // Where x_sums is in scratch memory, behind x.
  std::shared_ptr<const Tensor> weight_, scale_;
  std::vector<int8_t> least_;
  std::vector<float> bias_;
};

// f(least, most) of the codes of each group of a channel.
template <typename F>
void ForGroups(const Tensor& weight, int64_t group, F f) {
  const int64_t depth = weight.dim(1);
  for (int64_t n = 0; n < weight.dim(0); ++n) {
    for (int64_t k = 0; k < depth; k += group) {
      const absl::Span<const int8_t> codes = weight.values<int8_t>().subspan(n * depth + k, std::min(group, depth - k));
      const auto [least, most] = std::minmax_element(codes.begin(), codes.end());
      f(*least, *most);
    }
  }
}

absl::Status CheckOperands(const KernelDesc& desc) {
  const Tensor *weight = desc.ParameterOrNull("weight"), *scale = desc.ParameterOrNull("weight_scale");
  if (!desc.has_input(0) || !desc.has_input(1) || weight == nullptr || scale == nullptr) {
    return absl::InvalidArgumentError("linear_groups: wanted codes, their scales, constant weight and weight_scale");
  }
  const TensorType &x = desc.input(0), &y = desc.output();
  const int64_t depth = weight->rank() == 2 ? weight->dim(1) : 0, group = desc.GetInt("group_size");
  const bool is_mxfp4 = weight->dtype() == DType::kU8;
  const bool fits = depth > 0 && x.dtype == DType::kI8 && !x.quant && x.rank() > 0 && x.shape.back() == depth &&
                    desc.input(1).num_elements() * depth == x.num_elements() &&
                    y.num_elements() * depth == x.num_elements() * weight->dim(0) &&
                    (group == kUnit || (!is_mxfp4 && (group == 2 * kUnit || group == 4 * kUnit))) &&
                    scale->shape() == Shape{weight->dim(0), (depth + group - 1) / group};
  if (!fits) {
    return absl::UnimplementedError(absl::StrCat(
        "linear_groups: input ", ToString(x), ", scales ", ToString(desc.input(1)), ", weight ",
        ToString(weight->type()), ", weight_scale ", ToString(scale->shape()), " by ", group, ", output ", ToString(y),
        ", wanted [..., K], [..., 1], [N, K], [N, ceil(K / 32, 64 or 128)] (of u8: 32) and ", "[..., N], K not 0"));
  }
  for (int64_t i = 0; i < scale->num_elements(); ++i) {
    const double value = scale->At(i);
    if (is_mxfp4 ? value >= kLeastScale && value <= kGreatestScale : std::isfinite(value)) continue;
    return absl::FailedPreconditionError(absl::StrCat("output channel ", i / scale->dim(1), ": weight_scale is ", value,
                                                      ", wanted ", is_mxfp4 ? "one in [2, 254]" : "a finite one"));
  }
  return absl::OkStatus();
}

// The activation of a description that create takes.
absl::StatusOr<Activation> CheckedActivation(const KernelDesc& desc) {
  RETURN_IF_ERROR(CheckOperands(desc));
  ASSIGN_OR_RETURN(const Activation activation, ParseActivation(desc.GetString("activation")));
  if (!activation.bounds().is_none() && !activation.is_relu()) {
    return absl::UnimplementedError(absl::StrCat(ToString(activation), " of a float result"));
  }
  return activation;
}

absl::StatusOr<std::string> VariantName(const KernelDesc& desc) {
  RETURN_IF_ERROR(CheckedActivation(desc).status());
  return kernels::BestVariant(Variants(), desc.isa).name;
}

}  // namespace

Format FormatOf(const Tensor& weight, int64_t group) {
  if (weight.dtype() == DType::kU8) return Format::kMxfp4;
  bool fit = true;
  ForGroups(weight, group, [&](int least, int most) { fit = fit && most - least <= 15; });
  return fit ? Format::kInt4 : Format::kInt8;
}

std::vector<int8_t> LeastOfGroups(const Tensor& weight, int64_t group) {
  std::vector<int8_t> leasts;
  bool all = true;
  ForGroups(weight, group, [&](int least, int most) {
    const bool usual = least >= -8 && most <= 7;
    leasts.push_back(static_cast<int8_t>(usual ? LeastOf(Format::kInt4) : least));
    all = all && usual;
  });
  return all ? std::vector<int8_t>() : leasts;
}

absl::Span<const Variant> Variants() { return kVariants; }

absl::StatusOr<std::unique_ptr<kernels::Kernel>> CreateVariant(const KernelDesc& desc, const Variant& variant) {
  ASSIGN_OR_RETURN(const Activation activation, CheckedActivation(desc));
  return std::make_unique<LinearGroups>(desc, activation, variant);
}

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const KernelDesc& desc) {
  return CreateVariant(desc, kernels::BestVariant(Variants(), desc.isa));
}

void Register(kernels::KernelRegistry& registry) {
  kernels::KernelEntry entry;
  entry.op = "int8.linear_groups";
  entry.layout = kernels::LayoutRule::kRowMajor;
  entry.create = Create;
  entry.variant = VariantName;
  registry.Register(std::move(entry));
}

void scalar::Run(const Params& p, const Range& range) {
  const int64_t group = p.units * kUnit;
  for (int64_t row = range.row_begin; row < range.row_end; ++row) {
    const int8_t* x = p.x + row * p.depth;
    for (int64_t n = range.channel_begin; n < range.channel_end; ++n) {
      const uint8_t* weight = p.weight + n * p.groups * p.units * p.unit_bytes;
      const auto weight_of = [&](int64_t k) -> int32_t {
        if (p.format == Format::kInt8) return weight[k];
        const uint8_t byte = weight[k / 8 * 4 + k % 4];
        const int code = k % 8 < 4 ? byte & 15 : byte >> 4;
        return p.format == Format::kInt4 ? code : kMxfp4Weights[code];
      };
      float t = 0;
      for (int64_t g = 0; g < p.groups; ++g) {
        const int64_t i = n * p.groups + g;
        const int least = p.least != nullptr ? p.least[i] : LeastOf(p.format);
        int32_t sum = least * static_cast<int16_t>(p.x_sums[row * p.groups + g]);
        for (int64_t k = g * group; k < (g + 1) * group; ++k) sum += x[k] * weight_of(k);
        const float factor = p.format == Format::kMxfp4
                                 ? std::ldexp(1.0f, static_cast<const uint8_t*>(p.scale)[i] - 128)
                                 : static_cast<const float*>(p.scale)[i];
        t = std::fma(static_cast<float>(sum), factor, t);
      }
      p.y[row * p.channels + n] = std::fma(t, p.x_scale[row], p.bias[n]);
    }
  }
}

}  // namespace fuselage::int8::linear_groups
