// Elementwise operators, each alone: every one that kernels/fused_elementwise has as a step, on f32; and, to the bits
// of their reference evaluation (ir/ops/unary, binary, where),
//
//   abs add maximum minimum mul neg relu sign sub, bitwise_*     of u8, i8, i32, i64
//   div fmod remainder                                           of these, by constants none of which is 0
//   eq ne gt ge lt le                                            of these, bool and f32
//   logical_*                                                    of bool
//   isnan isinf                                                  of f32
//   where                                                        of any element type
//
// with NumPy broadcasting, in either layout. Declines (Unimplemented): other element types, more than 8 dimensions, an
// add of integers with an alpha or an activation, isinf of one sign.
#ifndef FUSELAGE_KERNELS_POINTWISE_POINTWISE_H_
#define FUSELAGE_KERNELS_POINTWISE_POINTWISE_H_

#include <memory>

#include "kernels/core/kernel.h"
#include "kernels/core/registry.h"

namespace fuselage::pointwise {

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc);
// All of them, with the same bits on every machine. Where kernels/fp32 has a faster one on oneDNN, it registers that.
void RegisterAll(kernels::KernelRegistry& registry);

}  // namespace fuselage::pointwise

#endif  // FUSELAGE_KERNELS_POINTWISE_POINTWISE_H_
