#include "kernels/int8/dequantize/dequantize.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "kernels/core/requantize.h"

namespace fuselage::int8::dequantize {
namespace {

using kernels::Isa;
using kernels::KernelDesc;

constexpr Variant kVariants[] = {
    {"scalar", Isa::kScalar, nullptr, scalar::Run},
    {"avx2", Isa::kAvx2, nullptr, avx2::Run},
    {"avx512_vnni", Isa::kAvx512Vnni, nullptr, avx512_vnni::Run},
};

constexpr int64_t kGrain = 1 << 13;  // Elements.

class Dequantize : public kernels::UnaryKernel {
 public:
  Dequantize(const KernelDesc& desc, const Params& params, const Variant& variant)
      : UnaryKernel(desc), params_(params), run_(variant.run) {
    set_variant(variant.name);
    grain_pixels_ = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, params.channels) / 64) * 64;
    if (desc.input_placement(0).dense() || params.channels > 1) return;
    const kernels::PlacedTensor placed(desc.input(0).shape, desc.input_placement(0));
    run_codes_ = std::max<int64_t>(1, placed.channels);
    gap_ = placed.pixel_bytes - placed.channels;
  }

 private:
  void ComputeUnary(const void* x, void* y, const kernels::RunContext& context) const override {
    const uint8_t* codes = static_cast<const uint8_t*>(x);
    float* values = static_cast<float*>(y);
    const int64_t pixels = params_.images * params_.pixels;
    if (gap_ == 0) {
      kernels::ForRanges(*context.parallel, pixels, grain_pixels_,
                         [&](int64_t begin, int64_t end) { run_(params_, codes, values, begin, end); });
      return;
    }
    // `run_` counts without the gaps.
    kernels::ForRanges(*context.parallel, pixels / run_codes_, std::max<int64_t>(1, kGrain / run_codes_),
                       [&](int64_t begin, int64_t end) {
                         for (int64_t i = begin; i < end; ++i) {
                           run_(params_, codes + i * gap_, values, i * run_codes_, (i + 1) * run_codes_);
                         }
                       });
  }

  Params params_;
  Function* run_;
  int64_t grain_pixels_;
  int64_t run_codes_ = 1,
          gap_ = 0;  // Of a tensor that keeps its order: codes side by side, and bytes between such runs.
};

}  // namespace

absl::Span<const Variant> Variants() { return kVariants; }

absl::StatusOr<Params> MakeParams(const KernelDesc& desc) {
  if (!desc.has_input(0)) return absl::InvalidArgumentError("dequantize: wanted an operand");
  const TensorType &x = desc.input(0), &y = desc.output();
  RETURN_IF_ERROR(kernels::CheckCodes(x, "input"));
  if (y.dtype != DType::kF32) {
    return absl::UnimplementedError(absl::StrCat("dequantize: output is ", ToString(y), ", wanted f32"));
  }
  if (x.shape != y.shape) {
    return absl::InvalidArgumentError(
        absl::StrCat("dequantize: ", ToString(x), " to ", ToString(y), ", wanted one shape"));
  }
  const kernels::Placement placement = desc.input_placement(0);
  if (!placement.even() || (!placement.dense() && (x.rank() != 4 || x.layout != Layout::kNhwc))) {
    return absl::UnimplementedError(
        absl::StrCat("dequantize: ", ToString(x), " with ", kernels::PlacementText(placement)));
  }
  const kernels::UnsignedForm form = kernels::UnsignedFormOf(x);
  Params params;
  params.pixels = x.num_elements();
  const bool separates = x.layout == Layout::kNhwc && y.layout == Layout::kRowMajor;
  if (x.rank() == 4 && separates && x.shape[1] > 1 && x.shape[2] * x.shape[3] > 1) {
    params.images = x.shape[0];
    params.channels = x.shape[1];
    params.pixels = x.shape[2] * x.shape[3];
    params.pixel_step = kernels::PlacedTensor(x.shape, placement).pixel_bytes;
  }
  params.scale = x.quant->scale();
  params.flip = form.flip;
  params.zero_point = form.zero_point;
  return params;
}

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const KernelDesc& desc) {
  ASSIGN_OR_RETURN(const Params params, MakeParams(desc));
  return std::make_unique<Dequantize>(desc, params, kernels::BestVariant(Variants(), desc.isa, params));
}

void Register(kernels::KernelRegistry& registry) {
  registry.Register({"int8.dequantize", kernels::LayoutRule::kAnyOutput, Create,
                     /*takes_placements=*/[](const KernelDesc& desc) { return MakeParams(desc).ok(); }});
}

void scalar::Run(const Params& p, const uint8_t* x, float* y, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    float* pixel = y + i / p.pixels * p.pixels * p.channels + i % p.pixels;
    for (int64_t c = 0; c < p.channels; ++c) {
      pixel[c * p.pixels] = static_cast<float>((x[i * p.pixel_step + c] ^ p.flip) - p.zero_point) * p.scale;
    }
  }
}

}  // namespace fuselage::int8::dequantize
