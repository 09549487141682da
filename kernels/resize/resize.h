// resize (ir/ops/resize): axis after axis, each by a table of positions and weights that is made with the kernel.
// Row-major or NHWC. nearest moves elements of any type; linear and cubic take f32, in f32, and decline
// (Unimplemented) f16 and f64.
#ifndef FUSELAGE_KERNELS_RESIZE_RESIZE_H_
#define FUSELAGE_KERNELS_RESIZE_RESIZE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/core/kernel.h"
#include "kernels/core/registry.h"
#include "kernels/core/variant.h"

namespace fuselage::resize {

// A row of `inner` results: to[i] = sum over taps, in their order, of weight[t] * from[index[t] * inner + i].
struct Row {
  int taps;
  int64_t inner;
};
using Function = void(const Row& row, const float* from, const int32_t* index, const float* weight, float* to);
using Variant = kernels::Variant<Row, Function>;

absl::Span<const Variant> Variants();

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc);
void Register(kernels::KernelRegistry& registry);

FUSELAGE_VARIANTS(Function, Run)

}  // namespace fuselage::resize

#endif  // FUSELAGE_KERNELS_RESIZE_RESIZE_H_
