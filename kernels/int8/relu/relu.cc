#include "kernels/int8/relu/relu.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "absl/strings/str_cat.h"
#include "kernels/core/requantize.h"

namespace fuselage::int8::relu {
namespace {

using kernels::Isa;
using kernels::KernelDesc;

constexpr Variant kVariants[] = {
    {"scalar", Isa::kScalar, nullptr, scalar::Run},
    {"avx2", Isa::kAvx2, nullptr, avx2::Run},
    {"avx512_vnni", Isa::kAvx512Vnni, nullptr, avx512_vnni::Run},
};

constexpr int64_t kGrain = 1 << 15;

class Relu : public kernels::UnaryKernel {
 public:
  Relu(const KernelDesc& desc, const Params& params, const Variant& variant)
      : UnaryKernel(desc), params_(params), run_(variant.run), elements_(desc.output().num_elements()) {
    set_variant(variant.name);
  }

 private:
  void ComputeUnary(const void* x, void* y, const kernels::RunContext& context) const override {
    kernels::ForRanges(*context.parallel, elements_, kGrain, [&](int64_t begin, int64_t end) {
      run_(params_, static_cast<const uint8_t*>(x) + begin, static_cast<uint8_t*>(y) + begin, end - begin);
    });
  }

  Params params_;
  Function* run_;
  int64_t elements_;
};

}  // namespace

absl::Span<const Variant> Variants() { return kVariants; }

absl::StatusOr<Params> MakeParams(const KernelDesc& desc) {
  if (!desc.has_input(0)) return absl::InvalidArgumentError("relu: wanted an operand");
  const TensorType &x = desc.input(0), &y = desc.output();
  RETURN_IF_ERROR(kernels::CheckCodes(x, "input"));
  RETURN_IF_ERROR(kernels::CheckCodes(y, "output"));
  if (x.shape != y.shape || x.layout != y.layout) {
    return absl::InvalidArgumentError(
        absl::StrCat("relu: ", ToString(x), " to ", ToString(y), ", wanted one shape and layout"));
  }
  const kernels::UnsignedForm form_x = kernels::UnsignedFormOf(x), form_y = kernels::UnsignedFormOf(y);
  const kernels::CodeRange range = kernels::CodeRangeOf(DType::kU8, form_y.zero_point, /*scale=*/1, Activation::Relu());
  Params params;
  params.same = x.dtype == y.dtype && x.quant == y.quant;
  params.flip_x = form_x.flip;
  params.flip_y = form_y.flip;
  params.zero_point_x = form_x.zero_point;
  params.zero_point_y = form_y.zero_point;
  params.multiplier = x.quant->scale() / y.quant->scale();
  params.lo = range.lo;
  params.hi = range.hi;
  if (!std::isnormal(params.multiplier)) {
    return absl::FailedPreconditionError(absl::StrCat("relu: input scale / output scale is ",
                                                      ShortestText(params.multiplier), ", wanted a normal float"));
  }
  return params;
}

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const KernelDesc& desc) {
  ASSIGN_OR_RETURN(const Params params, MakeParams(desc));
  return std::make_unique<Relu>(desc, params, kernels::BestVariant(Variants(), desc.isa, params));
}

void Register(kernels::KernelRegistry& registry) {
  registry.Register({"int8.relu", kernels::LayoutRule::kSame, Create});
}

void scalar::Run(const Params& p, const uint8_t* x, uint8_t* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const int32_t code = x[i] ^ p.flip_x;
    const int32_t q = p.same ? std::max(code, p.zero_point_x)
                             : kernels::ToCode(static_cast<float>(code - p.zero_point_x) * p.multiplier, p.zero_point_y,
                                               {p.lo, p.hi});
    y[i] = static_cast<uint8_t>(q) ^ p.flip_y;
  }
}

}  // namespace fuselage::int8::relu
