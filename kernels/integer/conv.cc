#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/integer/conv.h"
#include "kernels/integer/integer.h"
#include "kernels/integer/product.h"

namespace fuselage::integer {
namespace {

using kernels::KernelDesc;

Axes AxesOf(const KernelDesc& desc, const Tensor& weight) {
  const Shape &in = desc.input(kInput).shape, &out = desc.output().shape;
  const std::vector<int64_t>&stride = desc.GetInts("stride"), &dilation = desc.GetInts("dilation"),
        &padding = desc.GetInts("padding");
  Axes axes;
  for (int i = 0; i < 2; ++i) {
    axes[i] = {in[2 + i],
               out[2 + i],
               weight.dim(2 + i),
               stride.empty() ? 1 : stride[i],
               dilation.empty() ? 1 : dilation[i],
               padding.empty() ? 0 : padding[i]};
  }
  return axes;
}

class ConvInteger : public kernels::Kernel {
 public:
  ConvInteger(const KernelDesc& desc, const Axes& axes, const ConvWeight& weight, const Variant& variant)
      : Kernel(desc), axes_(axes), channels_(weight.codes.dim(1)), run_(variant.run) {
    const Shape& out = desc.output().shape;
    product_.groups = desc.GetInt("groups");
    product_.rows = out[0] * out[2] * out[3];
    product_.depth = channels_ * axes_[0].kernel * axes_[1].kernel;
    product_.columns = out[1] / product_.groups;
    const TensorType type{DType::kI16, {product_.packed_elements()}, std::nullopt, Layout::kRowMajor};
    packed_ = desc.Packed(
        "weight", absl::StrCat("conv_integer ", product_.groups, " ", TextOf(weight.zero_point), " ", ToString(type)),
        [&] { return Packed(weight, type); });
    set_variant(variant.name);
    set_weight_bytes(0, {packed_});
    set_scratch_bytes(product_.scratch_bytes(desc.threads));
  }

 private:
  // Depth is (row, column, channel), as im2col of NHWC has it.
  Tensor Packed(const ConvWeight& weight, const TensorType& type) const {
    Tensor packed(type);
    const int64_t taps = axes_[0].kernel * axes_[1].kernel;
    const auto element = [&](int64_t group, int64_t k, int64_t n) {
      return weight(group * product_.columns + n, k % channels_ * taps + k / channels_);
    };
    for (int64_t panel = 0; panel < product_.groups * product_.panels(); ++panel) {
      PackPanel(product_, panel, element, packed.data<int16_t>());
    }
    return packed;
  }

  void Compute(absl::Span<const kernels::ConstBuffer> inputs, absl::Span<const kernels::Buffer> outputs,
               const kernels::RunContext& context) const override {
    const int32_t zero_point = ZeroPoint(*this, kInputZeroPoint, inputs);
    const auto pack_rows = [&](int64_t row, int64_t n, int64_t group, int16_t* to) {
      for (int64_t r = row; r < row + n; ++r, to += 2 * product_.pairs()) {
        if (this->inputs()[kInput]->dtype == DType::kU8) {
          PackPixel(static_cast<const uint8_t*>(inputs[kInput].data), zero_point, r, group, to);
        } else {
          PackPixel(static_cast<const int8_t*>(inputs[kInput].data), zero_point, r, group, to);
        }
        if (product_.depth % 2 != 0) to[product_.depth] = 0;
      }
    };
    Multiply(product_, packed_->data<int16_t>(), pack_rows, run_, static_cast<int32_t*>(outputs[0].data),
             context.scratch.data, *context.parallel);
  }

  // What the window at output pixel `row` of all images sees: zeros in the padding.
  template <typename Code>
  void PackPixel(const Code* x, int32_t zero_point, int64_t row, int64_t group, int16_t* to) const {
    const auto& [h, w] = axes_;
    const int64_t all = product_.groups * channels_;
    const Code* image = x + row / (w.output * h.output) * h.input * w.input * all + group * channels_;
    for (int64_t i = 0; i < h.kernel; ++i) {
      for (int64_t j = 0; j < w.kernel; ++j, to += channels_) {
        const int64_t iy = h.Place(row / w.output % h.output, i), ix = w.Place(row % w.output, j);
        if (!h.Includes(iy) || !w.Includes(ix)) {
          std::fill_n(to, channels_, int16_t{0});
          continue;
        }
        const Code* pixel = image + (iy * w.input + ix) * all;
        for (int64_t c = 0; c < channels_; ++c) to[c] = static_cast<int16_t>(pixel[c] - zero_point);
      }
    }
  }

  const Axes axes_;
  const int64_t channels_;  // A group's.
  Product product_;
  Function* const run_;
  std::shared_ptr<const Tensor> packed_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<kernels::Kernel>> CreateConv(const KernelDesc& desc) {
  const Tensor* weight = desc.ParameterOrNull("weight");
  if (!desc.has_input(kInput) || weight == nullptr) {
    return absl::InvalidArgumentError("conv_integer2d: wanted an operand and a weight");
  }
  if (desc.has_input(kInputZeroPoint) && desc.input(kInputZeroPoint).num_elements() != 1) {
    return absl::UnimplementedError(
        absl::StrCat("input_zero_point is ", ToString(desc.input(kInputZeroPoint)), ", wanted one element"));
  }
  const Tensor* zero_point = desc.ParameterOrNull("weight_zero_point");
  const bool per_channel = zero_point != nullptr && zero_point->rank() == 4 &&
                           zero_point->num_elements() == weight->dim(0) && zero_point->dim(0) == weight->dim(0);
  if (zero_point != nullptr && zero_point->num_elements() != 1 && !per_channel) {
    return absl::UnimplementedError(absl::StrCat("weight_zero_point is ", ToString(zero_point->type()),
                                                 ", wanted one element, or one per channel"));
  }
  const Axes axes = AxesOf(desc, *weight);
  const ConvWeight less{*weight, zero_point};
  const bool depthwise = weight->dim(1) == 1 && weight->dim(0) == desc.input(kInput).shape[1];
  if (depthwise) return MakeDepthwise(desc, axes, less);
  return std::make_unique<ConvInteger>(desc, axes, less, kernels::BestVariant(Variants(), desc.isa, Tile()));
}

}  // namespace fuselage::integer
