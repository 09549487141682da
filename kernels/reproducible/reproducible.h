// Float kernels with one result on every machine: calibration runs on them (docs/arithmetic.md), since what it measures
// decides the codes of a network.
//
//   sum_0 = bias (or 0);  sum_k+1 = fma(x[k], w[k], sum_k);  y = activation(sum_K + residual)
//
// Every element of a convolution, linear or matrix product is such a chain of its own: k runs over the window's taps in
// row-major order and, within a tap, over the input channels of the group; a tap in the padding multiplies by 0.
// Vectors and tiles go across elements, blocks of k store and reload the float32 sum, so neither the instruction set
// nor the block sizes nor the threads can change a bit (that a NaN is one is sure, its payload is not). Pools,
// batch_norm and softmax's sum are double in row-major order, rounded once to float32; layer_norm is kernels/norm's,
// exponentials and elementwise operators are ir/base/elementwise_math.h's.
//
// Declines (Unimplemented): operands that are not f32, or without elements; batch statistics of batch_norm.
#ifndef FUSELAGE_KERNELS_REPRODUCIBLE_REPRODUCIBLE_H_
#define FUSELAGE_KERNELS_REPRODUCIBLE_REPRODUCIBLE_H_

#include "absl/types/span.h"
#include "kernels/core/registry.h"
#include "kernels/reproducible/primitives.h"

namespace fuselage::reproducible {

// Counts changes of the arithmetic above: what was computed with another one is not comparable to the bit.
constexpr int kArithmeticVersion = 2;

void Register(kernels::KernelRegistry& registry);

// Kernels that choose among these primitives, which must live as long as the registry; for tests with emulated ones.
void RegisterWith(absl::Span<const Primitives> table, kernels::KernelRegistry& registry);

}  // namespace fuselage::reproducible

#endif  // FUSELAGE_KERNELS_REPRODUCIBLE_REPRODUCIBLE_H_
