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

constexpr int64_t kGrain = 1 << 13;  // Elements that are worth a thread's while.

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
    const int64_t grain = std::max<int64_t>(1, kGrain * parts_ / std::max<int64_t>(1, length_ * stride_));
    kernels::ForRanges(*context.parallel, planes_ * parts_, grain, [&](int64_t first_part, int64_t end_part) {
      for (int64_t i = first_part; i < end_part; ++i) {
        const int64_t begin = stride_ * (i % parts_) / parts_, end = stride_ * (i % parts_ + 1) / parts_;
        const int64_t first = i / parts_ * length_ * stride_ + begin;
        run_({length_, stride_, end - begin}, static_cast<const float*>(x) + first, static_cast<float*>(y) + first);
      }
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
