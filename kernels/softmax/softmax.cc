#include "kernels/softmax/softmax.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "kernels/softmax/columns.h"

namespace fuselage::softmax {
namespace {

using kernels::Isa;
using kernels::KernelDesc;

constexpr Variant kVariants[] = {
    {"scalar", Isa::kScalar, nullptr, scalar::Run},
    {"avx2", Isa::kAvx2, nullptr, avx2::Run},
    {"avx512_vnni", Isa::kAvx512Vnni, nullptr, avx512_vnni::Run},
};

class Softmax final : public kernels::UnaryKernel {
 public:
  Softmax(const KernelDesc& desc, int axis) : UnaryKernel(desc) {
    const Shape& shape = desc.input(0).shape;
    length_ = shape[axis];
    stride_ = std::accumulate(shape.begin() + axis + 1, shape.end(), int64_t{1}, std::multiplies<>());
    parts_ = (stride_ + kMostColumns - 1) / kMostColumns;
    planes_ = length_ * stride_ == 0 ? 0 : desc.input(0).num_elements() / (length_ * stride_);
    const Variant& variant = kernels::BestVariant(Variants(), desc.isa);
    run_ = variant.run;
    set_variant(variant.name);
  }

 private:
  void ComputeUnary(const void* x, void* y, const kernels::RunContext& context) const override {
    context.parallel->For(static_cast<int>(planes_ * parts_), [&](int task, int) {
      const int64_t begin = stride_ * (task % parts_) / parts_, end = stride_ * (task % parts_ + 1) / parts_;
      const int64_t first = task / parts_ * length_ * stride_ + begin;
      run_({length_, stride_, end - begin}, static_cast<const float*>(x) + first, static_cast<float*>(y) + first);
    });
  }

  int64_t length_, stride_, parts_, planes_;
  Function* run_;
};

}  // namespace

absl::Span<const Variant> Variants() { return kVariants; }

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const KernelDesc& desc) {
  if (desc.inputs.size() != 1 || !desc.has_input(0) || desc.input(0).dtype != DType::kF32 || desc.input(0).quant) {
    return absl::InvalidArgumentError(absl::StrCat(desc.op, ": wanted one operand of f32"));
  }
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(desc.GetInt("dim"), desc.input(0).rank()));
  return std::make_unique<Softmax>(desc, axis);
}

void scalar::Run(const Params& params, const float* x, float* y) { RunColumns(params, x, y); }

}  // namespace fuselage::softmax
