#include "kernels/int8/quantize/quantize.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "kernels/core/requantize.h"
#include "kernels/int8/quantize/pixel_codes.h"

namespace fuselage::int8::quantize {
namespace {

using kernels::Isa;
using kernels::KernelDesc;

constexpr Variant kVariants[] = {
    {"scalar", Isa::kScalar, nullptr, scalar::Run},
    {"avx2", Isa::kAvx2, nullptr, avx2::Run},
    {"avx512_vnni", Isa::kAvx512Vnni, nullptr, avx512_vnni::Run},
};

class Loop final : public PixelLoop {
 public:
  Loop(const Params& params, Function* run)
      : PixelLoop(params.images * params.pixels, params.channels), params_(params), run_(run) {}

  void Run(const void* x, uint8_t* y, int64_t begin, int64_t end) const override {
    run_(params_, static_cast<const float*>(x), y, begin, end);
  }

 private:
  const Params params_;
  Function* const run_;
};

}  // namespace

absl::Span<const Variant> Variants() { return kVariants; }

absl::StatusOr<Params> MakeParams(const KernelDesc& desc) {
  if (!desc.has_input(0)) return absl::InvalidArgumentError("quantize: wanted an operand");
  const TensorType &x = desc.input(0), &y = desc.output();
  if (x.dtype != DType::kF32) {
    return absl::UnimplementedError(absl::StrCat("quantize: input is ", ToString(x), ", wanted f32"));
  }
  RETURN_IF_ERROR(kernels::CheckCodes(y, "output"));
  if (x.shape != y.shape) {
    return absl::InvalidArgumentError(
        absl::StrCat("quantize: ", ToString(x), " to ", ToString(y), ", wanted one shape"));
  }
  const kernels::UnsignedForm form = kernels::UnsignedFormOf(y);
  const kernels::CodeRange range = kernels::CodeRangeOf(DType::kU8, form.zero_point, /*scale=*/1);
  Params params;
  params.pixels = x.num_elements();
  const bool interleaves = x.layout == Layout::kRowMajor && y.layout == Layout::kNhwc;
  if (x.rank() == 4 && interleaves && x.shape[1] > 1 && x.shape[2] * x.shape[3] > 1) {
    params.images = x.shape[0];
    params.channels = x.shape[1];
    params.pixels = x.shape[2] * x.shape[3];
  }
  params.scale = y.quant->scale();
  params.flip = form.flip;
  params.zero_point = form.zero_point;
  params.lo = range.lo;
  params.hi = range.hi;
  return params;
}

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const KernelDesc& desc) {
  ASSIGN_OR_RETURN(const Params params, MakeParams(desc));
  RETURN_IF_ERROR(CheckPlacement(desc));
  const Variant& variant = kernels::BestVariant(Variants(), desc.isa, params);
  return MakePixelCodes(desc, variant.name, std::make_unique<Loop>(params, variant.run));
}

void Register(kernels::KernelRegistry& registry) {
  registry.Register({"int8.quantize", kernels::LayoutRule::kAnyInput, Create,
                     /*takes_placements=*/TakesPlacement});
}

void scalar::Run(const Params& p, const float* x, uint8_t* y, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    const float* pixel = x + i / p.pixels * p.pixels * p.channels + i % p.pixels;
    for (int64_t c = 0; c < p.channels; ++c) {
      const int32_t q = kernels::QuantizeValue(pixel[c * p.pixels], p.scale, p.zero_point, {p.lo, p.hi});
      y[i * p.channels + c] = static_cast<uint8_t>(q) ^ p.flip;
    }
  }
}

}  // namespace fuselage::int8::quantize
