#include "kernels/reduce/reduce.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/core/strides.h"
#include "kernels/reduce/adaptive.h"
#include "kernels/reduce/columns.h"

namespace fuselage::reduce {
namespace {

using kernels::Isa;
using kernels::KernelDesc;

constexpr Variant kVariants[] = {
    {"scalar", Isa::kScalar, nullptr, scalar::Run},
    {"avx2", Isa::kAvx2, nullptr, avx2::Run},
    {"avx512_vnni", Isa::kAvx512Vnni, nullptr, avx512_vnni::Run},
};

constexpr struct {
  const char* op;
  Fold fold;
} kFolds[] = {
    {"amax", Fold::kAmax}, {"amin", Fold::kAmin}, {"mean", Fold::kMean}, {"prod", Fold::kProd}, {"sum", Fold::kSum}};

constexpr int64_t kGrain = 1 << 13;  // Elements read that are worth a thread's while.
constexpr int64_t kColumns = 64;     // Results of one call.

// An axis that stays: strides in x and y.
struct Axis {
  int64_t size, x, y;
};

// By falling stride of y; neighbours are merged where both sides allow it.
std::vector<Axis> Simplified(std::vector<Axis> axes) {
  axes.erase(std::remove_if(axes.begin(), axes.end(), [](const Axis& axis) { return axis.size == 1; }), axes.end());
  std::stable_sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.y > b.y; });
  std::vector<Axis> merged;
  for (const Axis& axis : axes) {
    if (!merged.empty() && merged.back().x == axis.x * axis.size) {
      merged.back() = {merged.back().size * axis.size, axis.x, axis.y};
    } else {
      merged.push_back(axis);
    }
  }
  if (merged.empty()) merged.push_back({1, 1, 1});
  return merged;
}

class Reduce : public kernels::UnaryKernel {
 public:
  Reduce(const KernelDesc& desc, const Params& params, std::vector<Axis> kept, const Variant& variant)
      : UnaryKernel(desc),
        params_(params),
        kept_(std::move(kept)),
        results_(desc.output().num_elements()),
        run_(variant.run) {
    set_variant(variant.name);
  }

 private:
  void ComputeUnary(const void* x, void* y, const kernels::RunContext& context) const override {
    if (results_ == 0) return;
    const int64_t inner = kept_.back().size, chunks = (inner + kColumns - 1) / kColumns;
    const int64_t elements = std::max<int64_t>(1, params_.count) * std::min(inner, kColumns);
    kernels::ForRanges(*context.parallel, results_ / inner * chunks, std::max<int64_t>(1, kGrain / elements),
                       [&](int64_t begin, int64_t end) {
                         for (int64_t chunk = begin; chunk < end; ++chunk) {
                           Chunk(static_cast<const float*>(x), static_cast<float*>(y), chunk / chunks,
                                 chunk % chunks * kColumns);
                         }
                       });
  }

  // Results from `first` of the innermost axis, at index `outer` of the others.
  void Chunk(const float* x, float* y, int64_t outer, int64_t first) const {
    const Axis& inner = kept_.back();
    int64_t from = first * inner.x;
    const int64_t to = outer * inner.size + first;  // Results follow each other in memory.
    for (size_t i = kept_.size() - 1; i-- > 0; outer /= kept_[i].size) from += outer % kept_[i].size * kept_[i].x;
    run_(params_, x + from, y + to, std::min(kColumns, inner.size - first));
  }

  const Params params_;
  const std::vector<Axis> kept_;
  const int64_t results_;
  Function* const run_;
};

// Loops over the axes that the mean is of, in their order; neighbours are merged where that keeps it.
Params ParamsOf(const TensorType& x, const std::vector<bool>& reduced) {
  const std::vector<int64_t> strides = kernels::StridesOf(x);
  Params params;
  params.count = 1;
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (!reduced[axis]) continue;
    const Loop loop{x.shape[axis], strides[axis]};
    params.count *= loop.size;
    Loop* outer = params.num_loops == 0 ? nullptr : &params.loops[params.num_loops - 1];
    if (outer != nullptr && outer->stride == loop.stride * loop.size) {
      *outer = {outer->size * loop.size, loop.stride};
    } else {
      params.loops[params.num_loops++] = loop;
    }
  }
  if (params.num_loops == 0 || params.count == 0) {
    params.loops[0] = {params.count, 0};
    params.num_loops = 1;
  }
  return params;
}

}  // namespace

absl::Span<const Variant> Variants() { return kVariants; }

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const KernelDesc& desc) {
  const auto fold = std::find_if(std::begin(kFolds), std::end(kFolds), [&](const auto& f) { return f.op == desc.op; });
  if (fold == std::end(kFolds) || !desc.has_input(0)) {
    return absl::InvalidArgumentError(absl::StrCat(desc.op, ": no reduction, or no operand"));
  }
  const TensorType &x = desc.input(0), &y = desc.output();
  if (x.dtype != DType::kF32 || x.rank() > kMostAxes) {
    return absl::UnimplementedError(
        absl::StrCat(desc.op, " of ", ToString(x), ", wanted f32 of at most ", kMostAxes, " dimensions"));
  }
  const std::vector<int64_t>& dims = desc.GetInts("dims");
  std::vector<bool> reduced(x.rank(), dims.empty());
  for (const int64_t dim : dims) {
    ASSIGN_OR_RETURN(const int axis, NormalizeAxis(dim, x.rank()));
    reduced[axis] = true;
  }
  const std::vector<int64_t> from = kernels::StridesOf(x), to = kernels::StridesOf(y);
  std::vector<Axis> kept;
  int next = 0;  // The next of y's axes.
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (!reduced[axis]) kept.push_back({x.shape[axis], from[axis], to[next]});
    if (!reduced[axis] || desc.GetBool("keepdim")) ++next;
  }
  kept = Simplified(std::move(kept));
  Params params = ParamsOf(x, reduced);
  params.fold = fold->fold;
  params.result_stride = kept.back().x;
  const Variant& variant = kernels::BestVariant(Variants(), desc.isa, params);
  return std::make_unique<Reduce>(desc, params, std::move(kept), variant);
}

void Register(kernels::KernelRegistry& registry) {
  for (const auto& fold : kFolds) {
    registry.Register({fold.op, kernels::LayoutRule::kSame, Create});
  }
  for (const char* op : {"adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"}) {
    registry.Register({op, kernels::LayoutRule::kSame, CreateAdaptive});
  }
}

void scalar::Run(const Params& params, const float* x, float* y, int64_t n) { Folds(params, x, y, n); }

}  // namespace fuselage::reduce
