// int8.relu: y = max(x, 0) on codes.
//
//   q_y = max(q_x, z)                                       where both sides share type, scale and zero point
//   v = float(q_x - z_x) * (s_x / s_y);  q_y = clamp(rne(v) + z_y, max(lo, z_y), hi)           otherwise
#ifndef FUSELAGE_KERNELS_INT8_RELU_RELU_H_
#define FUSELAGE_KERNELS_INT8_RELU_RELU_H_

#include <cstdint>

#include "absl/types/span.h"
#include "kernels/core/kernel.h"
#include "kernels/core/registry.h"
#include "kernels/core/variant.h"
#include "kernels/int8/relu/relu_params.h"

namespace fuselage::int8::relu {

// n elements. `y` may be `x`.
using Function = void(const Params& params, const uint8_t* x, uint8_t* y, int64_t n);
using Variant = kernels::Variant<Params, Function>;

absl::Span<const Variant> Variants();

absl::StatusOr<Params> MakeParams(const kernels::KernelDesc& desc);
absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc);
void Register(kernels::KernelRegistry& registry);

FUSELAGE_VARIANTS(Function, Run)

}  // namespace fuselage::int8::relu

#endif  // FUSELAGE_KERNELS_INT8_RELU_RELU_H_
