// softmax of f32 along any axis in row-major order: y = e^(x - m) / sum of e^(x - m), m the largest along the axis.
//
// The elements behind the axis are the lanes: some columns at a time go through all rows, in vectors. The last axis has
// none behind it: some of its rows at a time are transposed, and their results back. That is worth it for short rows;
// others are better left to oneDNN, and every other axis to this. The arithmetic is
// ir/base/elementwise_math.h in a stated order: the same bits on every machine and number of threads. What lies 87 or
// more below the largest becomes 0.
#ifndef FUSELAGE_KERNELS_SOFTMAX_SOFTMAX_H_
#define FUSELAGE_KERNELS_SOFTMAX_SOFTMAX_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/core/kernel.h"
#include "kernels/core/variant.h"

namespace fuselage::softmax {

constexpr int64_t kMostColumns = 256;  // Of one call.
constexpr int64_t kShortRow = 24;      // Rows of the last axis that oneDNN takes longer for (softmax_bench).

// x and y are [length][stride], of whose columns the first `columns` count.
struct Params {
  int64_t length = 0, stride = 0, columns = 0;
};
using Function = void(const Params& params, const float* x, float* y);
using Variant = kernels::Variant<Params, Function>;

absl::Span<const Variant> Variants();

// InvalidArgument: another type than f32, or no such axis.
absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc);

FUSELAGE_VARIANTS(Function, Run)

}  // namespace fuselage::softmax

#endif  // FUSELAGE_KERNELS_SOFTMAX_SOFTMAX_H_
