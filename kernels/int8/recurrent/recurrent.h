// int8.rnn, int8.gru, int8.lstm: recurrent layers on codes (ir/ops/int8/recurrent).
//
// Composed of the kernels of int8.linear and int8.quantize, with their bits, and of the float layers' cell
// (kernels/recurrent), which has one arithmetic on all instruction sets:
//
//   p[d] = int8.linear(x, W[d], b_W[d])                      once, T*N rows
//   s    = int8.linear(int8.quantize(h[d]), R[d], b_R[d])    in each step, N rows
//   h[d] = cell(p[d] + s)
//
// A gru that resets first has two products in a step: without the rows of its third gate, and those alone, of r*h.
//
// x: u8 or i8 [T, N, I]. weight, recurrent_weight: i8 [D, G*H, I or H], symmetric, per tensor or per axis 1. The rest
// is f32. Declines: what int8.linear cannot prove.
#ifndef FUSELAGE_KERNELS_INT8_RECURRENT_RECURRENT_H_
#define FUSELAGE_KERNELS_INT8_RECURRENT_RECURRENT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/core/kernel.h"
#include "kernels/core/registry.h"
#include "kernels/int8/linear/linear.h"

namespace fuselage::int8::recurrent {

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc);

// What Register registers, with a table of the products' variants of the caller's, which must outlive it.
kernels::KernelEntry RnnWith(absl::Span<const linear::Variant> variants);
kernels::KernelEntry GruWith(absl::Span<const linear::Variant> variants);
kernels::KernelEntry LstmWith(absl::Span<const linear::Variant> variants);
void Register(kernels::KernelRegistry& registry);

}  // namespace fuselage::int8::recurrent

#endif  // FUSELAGE_KERNELS_INT8_RECURRENT_RECURRENT_H_
