// rnn, gru and lstm of f32 (ir/ops/recurrent), with the same bits on every instruction set and number of threads: sums
// of products are chains of fma in the order of the elements, activations ir/base/elementwise_math.h.
//
// The weights are packed into panels of 32 columns. A panel holds all gates of some units (slot by slot), so a thread
// that has the products of a panel has all that these units' next state takes:
//
//   rnn   32 units, slot p                        lstm  8 units, slots i, o, f, c
//   gru    8 units, slots z, r, and both parts of h: the input's and the state's
//
// First the inputs of all steps are multiplied, as one product; then one step follows the other: its panels' products,
// and from these the next state, of as many units, sequences and directions in one vector as a thread has (cell.h). A
// GRU that resets before its product (linear_before_reset = false) has a second product in each step, of r*h.
#ifndef FUSELAGE_KERNELS_RECURRENT_RECURRENT_H_
#define FUSELAGE_KERNELS_RECURRENT_RECURRENT_H_

#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "ir/base/recurrent.h"
#include "kernels/core/kernel.h"
#include "kernels/core/registry.h"
#include "kernels/core/variant.h"
#include "kernels/recurrent/cell.h"

namespace fuselage::recurrent {

constexpr int64_t kPanel = 32;

// What sums begin with: a row of kPanel for each, at sums + i * stride.
struct Initial {
  const float* sums;
  int64_t stride;
};

// sums[i][j] = fma(x[i][k], panel[k][j], sums[i][j]) for k = 0, 1, ..., depth - 1, from `initial`; row i of x lies at
// x + i * stride, the rows of panel and sums are kPanel long.
using MultiplyFunction = void(const float* x, int64_t stride, int64_t rows, const float* panel, int64_t depth,
                              Initial initial, float* sums);

struct Variant {
  const char* name;
  kernels::Isa isa;
  MultiplyFunction* multiply;
  ActivateFunction* activate;
};
absl::Span<const Variant> Variants();

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc);
void Register(kernels::KernelRegistry& registry);

FUSELAGE_VARIANTS(MultiplyFunction, Multiply)
FUSELAGE_VARIANTS(ActivateFunction, Activate)

}  // namespace fuselage::recurrent

#endif  // FUSELAGE_KERNELS_RECURRENT_RECURRENT_H_
