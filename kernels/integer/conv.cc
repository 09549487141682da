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
    product_.bytes = variant.bytes;
    packed_ = desc.Packed("weight",
                          absl::StrCat("conv_integer ", variant.name, " ", product_.groups, " ",
                                       TextOf(weight.zero_point), " ", ToString(product_.packed_type())),
                          [&] { return Packed(weight); });
    set_variant(variant.name);
    set_weight_bytes(0, {packed_});
    set_scratch_bytes(product_.scratch_bytes(desc.threads));
  }

 private:
  // Depth is (row, column, channel), as im2col of NHWC has it.
  Tensor Packed(const ConvWeight& weight) const {
    Tensor packed(product_.packed_type());
    const int64_t taps = axes_[0].kernel * axes_[1].kernel;
    const auto element = [&](int64_t group, int64_t k, int64_t n) {
      return weight(group * product_.columns + n, k % channels_ * taps + k / channels_);
    };
    for (int64_t panel = 0; panel < product_.groups * product_.panels(); ++panel) {
      PackPanel(product_, panel, element, packed.raw_data());
    }
    return packed;
  }

  void Compute(absl::Span<const kernels::ConstBuffer> inputs, absl::Span<const kernels::Buffer> outputs,
               const kernels::RunContext& context) const override {
    const DType dtype = this->inputs()[kInput]->dtype;
    const Left left = LeftOf(product_, dtype, ZeroPoint(*this, kInputZeroPoint, inputs));
    const auto pack_rows = [&](int64_t row, int64_t n, int64_t group, void* to) {
      WithTypes(product_, dtype, [&](auto code, auto packed) {
        const auto* x = static_cast<const decltype(code)*>(inputs[kInput].data);
        auto* rows = static_cast<decltype(packed)*>(to);
        const int64_t depth = product_.steps() * product_.per_step();
        const auto& [h, w] = axes_;
        int64_t oy = row / w.output % h.output, ox = row % w.output, image = row / (w.output * h.output);
        for (int64_t r = 0; r < n; ++r, rows += depth) {
          PackPixel(x + image * h.input * w.input * product_.groups * channels_, left, oy, ox, group, rows);
          std::fill(rows + product_.depth, rows + depth, decltype(packed){0});
          if (++ox < w.output) continue;
          ox = 0;
          if (++oy < h.output) continue;
          oy = 0;
          ++image;
        }
      });
    };
    Multiply(product_, packed_->raw_data(), left.zero, pack_rows, run_, static_cast<int32_t*>(outputs[0].data),
             context.scratch.data, *context.parallel);
  }

  // What the window at an image's output pixel sees: zero points in the padding.
  template <typename Code, typename To>
  void PackPixel(const Code* image, const Left& left, int64_t oy, int64_t ox, int64_t group, To* to) const {
    const auto& [h, w] = axes_;
    const int64_t all = product_.groups * channels_, row = w.kernel * channels_;
    const int64_t first = w.Place(ox, 0), last = w.Place(ox, w.kernel - 1);
    const bool together = product_.groups == 1 && w.dilation == 1 && w.Includes(first) && w.Includes(last);
    for (int64_t i = 0; i < h.kernel; ++i, to += row) {
      const int64_t iy = h.Place(oy, i);
      if (!h.Includes(iy)) {
        std::fill_n(to, row, static_cast<To>(left.zero));
        continue;
      }
      const Code* line = image + iy * w.input * all + group * channels_;
      if (together) {
        PackCodes(line + first * all, row, left.less, to);
        continue;
      }
      for (int64_t j = 0; j < w.kernel; ++j) {
        const int64_t ix = w.Place(ox, j);
        if (w.Includes(ix)) {
          PackCodes(line + ix * all, channels_, left.less, to + j * channels_);
        } else {
          std::fill_n(to + j * channels_, channels_, static_cast<To>(left.zero));
        }
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
  return std::make_unique<ConvInteger>(desc, axes, less, kernels::BestVariant(Variants(), desc.isa));
}

}  // namespace fuselage::integer
