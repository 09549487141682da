// int8.add: y = a + b on codes, each operand with its own scale and zero point, ReLU fused.
//
//   v = fma(float(b - z_b), s_b / s_y, float(a - z_a) * (s_a / s_y))
//   q = clamp(rne(v) + z_y, lo, hi)                                     ReLU: lo = max(lo, z_y)
//
// A smaller operand may repeat whole along the result's first dimensions (a position embedding beside a batch); one
// that broadcasts otherwise (a value for each channel) is gathered a block at a time.
//
// Declines: alpha other than 1; float operands or result.
#ifndef FUSELAGE_KERNELS_INT8_ADD_ADD_H_
#define FUSELAGE_KERNELS_INT8_ADD_ADD_H_

#include <cstdint>

#include "absl/types/span.h"
#include "kernels/core/kernel.h"
#include "kernels/core/registry.h"
#include "kernels/core/variant.h"
#include "kernels/int8/add/add_params.h"

namespace fuselage::int8::add {

// n elements. `y` may be `a` or `b`.
using Function = void(const Params& params, const uint8_t* a, const uint8_t* b, uint8_t* y, int64_t n);
using Variant = kernels::Variant<Params, Function>;

absl::Span<const Variant> Variants();

absl::StatusOr<Params> MakeParams(const kernels::KernelDesc& desc);
absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc);
void Register(kernels::KernelRegistry& registry);

FUSELAGE_VARIANTS(Function, Run)

}  // namespace fuselage::int8::add

#endif  // FUSELAGE_KERNELS_INT8_ADD_ADD_H_
