// Chains of elementwise operators in one pass over memory, on floats and on codes:
//
//   fused_elementwise(x0, x1, ...)         f32 -> f32
//   int8.fused_elementwise(x0, x1, ...)    codes -> codes; also int8.mul, int8.sigmoid, ...: one step each
//
// A block of elements goes through all steps while it lies in the L1 cache: operands are read once, the result is
// written once. int8.dequantize's and int8.quantize's loops turn codes into floats and back. Where codes are multiplied
// by an operand that repeats, as by squeeze and excite's factors, they become floats and codes again in registers. The
// arithmetic is ir/base/elementwise_math.h, so all variants give the same bits, in f32 too.
//
// Declines (Unimplemented): more than kMostValues values; operands that are codes beside operands that are not.
#ifndef FUSELAGE_KERNELS_FUSED_ELEMENTWISE_FUSED_ELEMENTWISE_H_
#define FUSELAGE_KERNELS_FUSED_ELEMENTWISE_FUSED_ELEMENTWISE_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/types/span.h"
#include "ir/base/elementwise_math.h"
#include "kernels/core/kernel.h"
#include "kernels/core/registry.h"
#include "kernels/core/variant.h"
#include "kernels/int8/dequantize/dequantize_params.h"
#include "kernels/int8/quantize/quantize_params.h"

namespace fuselage::fused_elementwise {

constexpr int64_t kBlock = 1024;  // Elements.
constexpr int kMostValues = 64;   // Operands and steps.

struct Params {
  int32_t num_inputs = 0;
  const ElementwiseInstruction* steps = nullptr;
  int32_t num_steps = 0;
};

// n <= kBlock elements: inputs[i] and `y` point at the block's; `scratch` has room for a block of each step but the
// last.
using Function = void(const Params& params, const float* const* inputs, float* y, float* scratch, int64_t n);
using Variant = kernels::Variant<Params, Function>;

absl::Span<const Variant> Variants();

// y = quantize(dequantize(x) * factor), of n elements.
struct ScaleParams {
  int8::dequantize::Params x;
  int8::quantize::Params y;
  float most_factor = std::numeric_limits<float>::infinity();  // No factor has a larger magnitude.
  bool only_negative = false;  // A prelu: values that are not below 0 have a factor of 1.
};
using ScaleFunction = void(const ScaleParams& params, const uint8_t* x, const float* factors, uint8_t* y, int64_t n);
using ScaleVariant = kernels::Variant<ScaleParams, ScaleFunction>;

absl::Span<const ScaleVariant> ScaleVariants();  // None is scalar.

// The steps of fused_elementwise, or of any other op as one.
absl::StatusOr<std::vector<ElementwiseInstruction>> StepsOf(const kernels::KernelDesc& desc);

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc);
void Register(kernels::KernelRegistry& registry);

FUSELAGE_VARIANTS(Function, Run)
FUSELAGE_VARIANTS(ScaleFunction, Scale)

}  // namespace fuselage::fused_elementwise

#endif  // FUSELAGE_KERNELS_FUSED_ELEMENTWISE_FUSED_ELEMENTWISE_H_
