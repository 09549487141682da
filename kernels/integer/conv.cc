#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/integer/integer.h"
#include "kernels/integer/product.h"

namespace fuselage::integer {
namespace {

using kernels::KernelDesc;

enum Operand { kInput, kInputZeroPoint };  // Those that arrive at run time.

struct Axis {
  int64_t input, output, kernel, stride, dilation, begin;
};

class ConvInteger : public kernels::Kernel {
 public:
  ConvInteger(const KernelDesc& desc, const Tensor& weight, const Tensor* zero_point, const Variant& variant)
      : Kernel(desc), run_(variant.run) {
    const Shape &in = desc.input(kInput).shape, &out = desc.output().shape;
    const std::vector<int64_t>&stride = desc.GetInts("stride"), &dilation = desc.GetInts("dilation"),
          &padding = desc.GetInts("padding");
    for (int i = 0; i < 2; ++i) {
      axes_[i] = {in[2 + i],
                  out[2 + i],
                  weight.dim(2 + i),
                  stride.empty() ? 1 : stride[i],
                  dilation.empty() ? 1 : dilation[i],
                  padding.empty() ? 0 : padding[i]};
    }
    channels_ = weight.dim(1);
    product_.groups = desc.GetInt("groups");
    product_.rows = out[0] * out[2] * out[3];
    product_.depth = channels_ * axes_[0].kernel * axes_[1].kernel;
    product_.columns = out[1] / product_.groups;
    const TensorType type{DType::kI16, {product_.packed_elements()}, std::nullopt, Layout::kRowMajor};
    packed_ = desc.Packed("weight",
                          absl::StrCat("conv_integer ", product_.groups, " ", TextOf(zero_point), " ", ToString(type)),
                          [&] { return Packed(weight, zero_point, type); });
    set_variant(variant.name);
    set_weight_bytes(0, {packed_});
    set_scratch_bytes(product_.scratch_bytes(desc.threads));
  }

 private:
  // Depth is (row, column, channel), as im2col of NHWC has it.
  Tensor Packed(const Tensor& weight, const Tensor* zero_point, const TensorType& type) const {
    Tensor packed(type);
    const int64_t taps = axes_[0].kernel * axes_[1].kernel;
    const auto element = [&](int64_t group, int64_t k, int64_t n) {
      const int64_t oc = group * product_.columns + n;
      const double zero = zero_point == nullptr ? 0 : zero_point->At(zero_point->num_elements() == 1 ? 0 : oc);
      return static_cast<int16_t>(weight.At((oc * channels_ + k % channels_) * taps + k / channels_) - zero);
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
    const int64_t x0 = row % w.output * w.stride - w.begin, y0 = row / w.output % h.output * h.stride - h.begin;
    const Code* image = x + row / (w.output * h.output) * h.input * w.input * all + group * channels_;
    for (int64_t i = 0; i < h.kernel; ++i) {
      for (int64_t j = 0; j < w.kernel; ++j, to += channels_) {
        const int64_t iy = y0 + i * h.dilation, ix = x0 + j * w.dilation;
        const bool inside = iy >= 0 && iy < h.input && ix >= 0 && ix < w.input;
        if (!inside) {
          std::fill_n(to, channels_, int16_t{0});
          continue;
        }
        const Code* pixel = image + (iy * w.input + ix) * all;
        for (int64_t c = 0; c < channels_; ++c) to[c] = static_cast<int16_t>(pixel[c] - zero_point);
      }
    }
  }

  Axis axes_[2];          // Rows, columns.
  int64_t channels_ = 0;  // A group's.
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
  return std::make_unique<ConvInteger>(desc, *weight, zero_point, kernels::BestVariant(Variants(), desc.isa, Tile()));
}

}  // namespace fuselage::integer
