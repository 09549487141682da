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
  }

 private:
  void ComputeUnary(const void* x, void* y, const kernels::RunContext& context) const override {
    kernels::ForRanges(*context.parallel, params_.images * params_.pixels, grain_pixels_,
                       [&](int64_t begin, int64_t end) {
                         run_(params_, static_cast<const uint8_t*>(x), static_cast<float*>(y), begin, end);
                       });
  }

  Params params_;
  Function* run_;
  int64_t grain_pixels_;
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
  const kernels::UnsignedForm form = kernels::UnsignedFormOf(x);
  Params params;
  params.pixels = x.num_elements();
  const bool separates = x.layout == Layout::kNhwc && y.layout == Layout::kRowMajor;
  if (x.rank() == 4 && separates && x.shape[1] > 1 && x.shape[2] * x.shape[3] > 1) {
    params.images = x.shape[0];
    params.channels = x.shape[1];
    params.pixels = x.shape[2] * x.shape[3];
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
  registry.Register({"int8.dequantize", kernels::LayoutRule::kAnyOutput, Create});
}

void scalar::Run(const Params& p, const uint8_t* x, float* y, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    float* pixel = y + i / p.pixels * p.pixels * p.channels + i % p.pixels;
    for (int64_t c = 0; c < p.channels; ++c) {
      pixel[c * p.pixels] = static_cast<float>((x[i * p.channels + c] ^ p.flip) - p.zero_point) * p.scale;
    }
  }
}

}  // namespace fuselage::int8::dequantize
