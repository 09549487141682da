// mean, sum, prod, amax and amin over any axes, and adaptive_avg_pool1d..3d (adaptive.h), of f32 in either layout.
//
// A result is folded in double, in the row-major order of the elements that it is of, and rounded once; a mean is the
// sum divided by their number: the reference's bits (ir/ops/reduce), on every instruction set and number of threads.
// Vectors and independent folds run across results, never within one.
#ifndef FUSELAGE_KERNELS_REDUCE_REDUCE_H_
#define FUSELAGE_KERNELS_REDUCE_REDUCE_H_

#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "kernels/core/kernel.h"
#include "kernels/core/registry.h"
#include "kernels/core/variant.h"

namespace fuselage::reduce {

constexpr int kMostAxes = 8;

struct Loop {
  int64_t size, stride;  // In elements.
};

enum class Fold { kMean, kSum, kProd, kAmax, kAmin };

// Result i of a row of them is the fold over the loops, outermost first, from x[i * result_stride].
struct Params {
  Fold fold = Fold::kMean;
  Loop loops[kMostAxes];
  int32_t num_loops = 0;
  int64_t count = 0;  // The product of their sizes.
  int64_t result_stride = 0;
};

// n results.
using Function = void(const Params& params, const float* x, float* y, int64_t n);
using Variant = kernels::Variant<Params, Function>;

absl::Span<const Variant> Variants();

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc);
void Register(kernels::KernelRegistry& registry);

FUSELAGE_VARIANTS(Function, Run)

}  // namespace fuselage::reduce

#endif  // FUSELAGE_KERNELS_REDUCE_REDUCE_H_
