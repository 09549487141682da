#include "kernels/softmax/softmax.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "kernels/core/transpose.h"
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

constexpr int64_t kGrain = 1 << 13;        // Elements that are worth a thread's while.
constexpr int64_t kColumnBytes = 8 << 10;  // Of rows of the last axis that are columns for a while.

class Softmax final : public kernels::UnaryKernel {
 public:
  Softmax(const KernelDesc& desc, int axis) : UnaryKernel(desc) {
    const Shape& shape = desc.input(0).shape;
    length_ = shape[axis];
    stride_ = std::accumulate(shape.begin() + axis + 1, shape.end(), int64_t{1}, std::multiplies<>());
    parts_ = (stride_ + kMostColumns - 1) / kMostColumns;
    planes_ = length_ * stride_ == 0 ? 0 : desc.input(0).num_elements() / (length_ * stride_);
    rows_ = std::clamp<int64_t>(kColumnBytes / (sizeof(float) * std::max<int64_t>(1, length_)), 1, kMostColumns);
    if (stride_ == 1) set_scratch_bytes(std::max(desc.threads, 1) * 2 * length_ * rows_ * int64_t{sizeof(float)});
    const Variant& variant = kernels::BestVariant(Variants(), desc.isa);
    run_ = variant.run;
    set_variant(variant.name);
  }

 private:
  void ComputeUnary(const void* x, void* y, const kernels::RunContext& context) const override {
    if (stride_ == 1) return ComputeRows(static_cast<const float*>(x), static_cast<float*>(y), context);
    const int64_t grain = std::max<int64_t>(1, kGrain * parts_ / std::max<int64_t>(1, length_ * stride_));
    kernels::ForRanges(*context.parallel, planes_ * parts_, grain, [&](int64_t first_part, int64_t end_part) {
      for (int64_t i = first_part; i < end_part; ++i) {
        const int64_t begin = stride_ * (i % parts_) / parts_, end = stride_ * (i % parts_ + 1) / parts_;
        const int64_t first = i / parts_ * length_ * stride_ + begin;
        run_({length_, stride_, end - begin}, static_cast<const float*>(x) + first, static_cast<float*>(y) + first);
      }
    });
  }

  // The rows of the last axis become columns, some at a time.
  void ComputeRows(const float* x, float* y, const kernels::RunContext& context) const {
    const int64_t blocks = (planes_ + rows_ - 1) / rows_;
    const int64_t tasks = std::min<int64_t>(blocks, (planes_ * length_ + kGrain - 1) / kGrain);
    context.parallel->For(static_cast<int>(tasks), [&](int task, int thread) {
      float* columns = static_cast<float*>(context.scratch.data) + thread * 2 * length_ * rows_;
      float* results = columns + length_ * rows_;
      for (int64_t block = blocks * task / tasks; block < blocks * (task + 1) / tasks; ++block) {
        const int64_t row = block * rows_, n = std::min(rows_, planes_ - row);
        kernels::Transpose(n, length_, x + row * length_, length_, columns, rows_);
        run_({length_, rows_, n}, columns, results);
        kernels::Transpose(length_, n, results, rows_, y + row * length_, length_);
      }
    });
  }

  int64_t length_, stride_, parts_, planes_, rows_;
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
