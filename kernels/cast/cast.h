// to: another element type, to the bits of the reference evaluation (ir/ops/cast). Integers wrap into integers;
// floats are truncated and saturate, NaN becomes 0; integers are rounded once, i64 to f32 twice, through double; all
// but 0 is true.
//
// From and to bool, u8, i8, i32, i64 and f32; f16 to f32 and back. Declines (Unimplemented) the others.
#ifndef FUSELAGE_KERNELS_CAST_CAST_H_
#define FUSELAGE_KERNELS_CAST_CAST_H_

#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "ir/base/dtype.h"
#include "kernels/core/kernel.h"
#include "kernels/core/registry.h"
#include "kernels/core/variant.h"

namespace fuselage::cast {

struct Params {
  DType from = DType::kI32, to = DType::kF32;
};

// n elements.
using Function = void(const Params& params, const void* x, void* y, int64_t n);
using Variant = kernels::Variant<Params, Function>;

absl::Span<const Variant> Variants();

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc);
void Register(kernels::KernelRegistry& registry);

FUSELAGE_VARIANTS(Function, Run)

}  // namespace fuselage::cast

#endif  // FUSELAGE_KERNELS_CAST_CAST_H_
