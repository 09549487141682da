#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "kernels/indexing/indexing.h"
#include "kernels/indexing/positions.h"

namespace fuselage::indexing {
namespace {

using kernels::KernelDesc;

template <typename T>
class Topk : public kernels::Kernel {
 public:
  Topk(const KernelDesc& desc, int axis)
      : Kernel(desc),
        k_(desc.GetInt("k")),
        dim_(desc.input(0).shape[axis]),
        inner_(SizeOf(desc.input(0).shape, axis + 1, desc.input(0).rank())),
        lines_(SizeOf(desc.input(0).shape, 0, axis) * inner_),
        largest_(desc.GetBool("largest")) {
    set_variant("scalar");
    set_scratch_bytes(std::max(1, desc.threads) * dim_ * static_cast<int64_t>(sizeof(Candidate)));
  }

 private:
  struct Candidate {
    T value;
    int64_t position;
  };

  void Compute(absl::Span<const kernels::ConstBuffer> inputs, absl::Span<const kernels::Buffer> outputs,
               const kernels::RunContext& context) const override {
    if (k_ == 0 || lines_ == 0) return;
    const T* x = static_cast<const T*>(inputs[0].data);
    T* values = static_cast<T*>(outputs[0].data);
    auto* positions = static_cast<int64_t*>(outputs[1].data);
    auto* scratch = static_cast<Candidate*>(context.scratch.data);
    const int64_t tasks = std::min<int64_t>(context.parallel->threads(), lines_);
    context.parallel->For(static_cast<int>(tasks), [&](int task, int) {
      Candidate* candidates = scratch + task * dim_;
      for (int64_t line = lines_ * task / tasks; line < lines_ * (task + 1) / tasks; ++line) {
        const T* from = x + line / inner_ * dim_ * inner_ + line % inner_;
        for (int64_t i = 0; i < dim_; ++i) candidates[i] = {from[i * inner_], i};
        Select(candidates);
        const int64_t to = line / inner_ * k_ * inner_ + line % inner_;
        for (int64_t i = 0; i < k_; ++i) {
          values[to + i * inner_] = candidates[i].value;
          positions[to + i * inner_] = candidates[i].position;
        }
      }
    });
  }

  // The best k first, in order: NaN is larger than any number, of equal ones the first is better.
  void Select(Candidate* candidates) const {
    const auto less = [](T a, T b) { return a < b || (a == a && b != b); };
    const auto better = [this, less](const Candidate& a, const Candidate& b) {
      if (largest_ ? less(b.value, a.value) : less(a.value, b.value)) return true;
      if (largest_ ? less(a.value, b.value) : less(b.value, a.value)) return false;
      return a.position < b.position;
    };
    if (k_ < dim_) std::nth_element(candidates, candidates + k_ - 1, candidates + dim_, better);
    std::sort(candidates, candidates + k_, better);
  }

  const int64_t k_, dim_, inner_, lines_;
  const bool largest_;
};

}  // namespace

KernelOr CreateTopk(const KernelDesc& desc) {
  const int axis = NormalizedAxis(desc.GetInt("dim"), desc.input(0).rank());
  switch (desc.input(0).dtype) {
    case DType::kF32: return std::make_unique<Topk<float>>(desc, axis);
    case DType::kI64: return std::make_unique<Topk<int64_t>>(desc, axis);
    case DType::kI32: return std::make_unique<Topk<int32_t>>(desc, axis);
    case DType::kU8: return std::make_unique<Topk<uint8_t>>(desc, axis);
    case DType::kI8: return std::make_unique<Topk<int8_t>>(desc, axis);
    default: return absl::UnimplementedError(absl::StrCat("topk of ", DTypeName(desc.input(0).dtype)));
  }
}

}  // namespace fuselage::indexing
