#include "kernels/cast/cast.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/cast/elements.h"

namespace fuselage::cast {
namespace {

using kernels::Isa;
using kernels::KernelDesc;

constexpr Variant kVariants[] = {
    {"scalar", Isa::kScalar, nullptr, scalar::Run},
    {"avx2", Isa::kAvx2, nullptr, avx2::Run},
    {"avx512_vnni", Isa::kAvx512Vnni, nullptr, avx512_vnni::Run},
};

constexpr int64_t kGrain = 1 << 14;  // Elements that are worth a thread's while.

class Cast : public kernels::UnaryKernel {
 public:
  Cast(const KernelDesc& desc, const Params& params, const Variant& variant)
      : UnaryKernel(desc), params_(params), run_(variant.run), elements_(desc.output().num_elements()) {
    set_variant(variant.name);
  }

 private:
  void ComputeUnary(const void* x, void* y, const kernels::RunContext& context) const override {
    kernels::ForRanges(*context.parallel, elements_, kGrain, [&](int64_t begin, int64_t end) {
      run_(params_, static_cast<const char*>(x) + begin * ByteSize(params_.from),
           static_cast<char*>(y) + begin * ByteSize(params_.to), end - begin);
    });
  }

  const Params params_;
  Function* const run_;
  const int64_t elements_;
};

bool IsCast(DType dtype) {
  return dtype == DType::kBool || dtype == DType::kU8 || dtype == DType::kI8 || dtype == DType::kI32 ||
         dtype == DType::kI64 || dtype == DType::kF32;
}

// FP16 is what networks take and give: floats of it, and it of floats.
bool IsOfHalves(const Params& params) {
  return params.from == DType::kF16 ? params.to == DType::kF32 : params.to == DType::kF16 && params.from == DType::kF32;
}

}  // namespace

absl::Span<const Variant> Variants() { return kVariants; }

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const KernelDesc& desc) {
  if (!desc.has_input(0)) return absl::InvalidArgumentError("to: wanted an operand");
  const Params params{desc.input(0).dtype, desc.output().dtype};
  if (!IsOfHalves(params) && (!IsCast(params.from) || !IsCast(params.to))) {
    return absl::UnimplementedError(absl::StrCat("to ", DTypeName(params.to), " from ", DTypeName(params.from)));
  }
  return std::make_unique<Cast>(desc, params, kernels::BestVariant(Variants(), desc.isa, params));
}

void Register(kernels::KernelRegistry& registry) { registry.Register({"to", kernels::LayoutRule::kSame, Create}); }

void scalar::Run(const Params& params, const void* x, void* y, int64_t n) { CastAll(params, x, y, n); }

}  // namespace fuselage::cast
