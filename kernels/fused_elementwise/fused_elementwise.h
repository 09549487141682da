// Chains of elementwise operators in one pass over memory, on floats and on codes:
//
//   fused_elementwise(x0, x1, ...)         f32 -> f32
//   int8.fused_elementwise(x0, x1, ...)    codes -> codes; also int8.mul, int8.sigmoid, ...: one step each
//
// A block of elements goes through all steps while it lies in the L1 cache: operands are read once, the result is
// written once. The arithmetic is ir/base/elementwise_math.h, so all variants give the same bits, in f32 too.
//
// Declines (Unimplemented): more than kMostValues values; operands that are codes beside operands that are not.
#ifndef FUSELAGE_KERNELS_FUSED_ELEMENTWISE_FUSED_ELEMENTWISE_H_
#define FUSELAGE_KERNELS_FUSED_ELEMENTWISE_FUSED_ELEMENTWISE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "ir/base/elementwise_math.h"
#include "kernels/core/kernel.h"
#include "kernels/core/registry.h"
#include "kernels/core/variant.h"

namespace fuselage::fused_elementwise {

constexpr int64_t kBlock = 512;  // Elements.
constexpr int kMostValues = 64;  // Operands and steps.

// How codes mean floats, in the unsigned form (see UnsignedForm): real value = ((q ^ flip) - zero_point) * scale.
struct Encoding {
  bool is_codes = false;  // Otherwise f32, and the rest is unused.
  uint8_t flip = 0;
  int32_t zero_point = 0;
  float scale = 1;
};

struct Params {
  const Encoding* inputs = nullptr;
  int32_t num_inputs = 0;
  const ElementwiseInstruction* steps = nullptr;
  int32_t num_steps = 0;
  Encoding output;
};

// n <= kBlock elements: inputs[i] and `y` point at the block's; `scratch` has room for num_inputs + num_steps blocks of
// floats.
using Function = void(const Params& params, const void* const* inputs, void* y, float* scratch, int64_t n);
using Variant = kernels::Variant<Params, Function>;

absl::Span<const Variant> Variants();

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc);
void Register(kernels::KernelRegistry& registry);

FUSELAGE_VARIANTS(Function, Run)

}  // namespace fuselage::fused_elementwise

#endif  // FUSELAGE_KERNELS_FUSED_ELEMENTWISE_FUSED_ELEMENTWISE_H_
