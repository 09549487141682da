// Activations that are no clamp (ir/base/activation.h), on tiles of floats between a kernel's sums and its output: each
// instruction set compiles the loops of elementwise_math.h, whose bits are those of elementwise::Activated.
#ifndef FUSELAGE_KERNELS_CORE_ACTIVATE_H_
#define FUSELAGE_KERNELS_CORE_ACTIVATE_H_

#include <cstdint>

#include "ir/base/elementwise_math.h"
#include "kernels/core/variant.h"

namespace fuselage::kernels {

// values[i] = Activated(function, values[i]) for all of the tile, whose size is a multiple of kActivatedTogether.
constexpr int64_t kActivatedTogether = 16;
using ActivateFunction = void(const ElementwiseInstruction& function, float* values, int64_t size);

FUSELAGE_VARIANTS(ActivateFunction, Activate)

namespace {  // Local to the including source, which may be one for an instruction set.

// Calls map(f), where f maps a vector of Lanes (elementwise_math.h), if the function is one of the most frequent: the
// loops that GCC makes of these compare and blend where one instruction does both. False: it is another.
template <typename Lanes, typename Map>
constexpr __attribute__((always_inline)) bool MapFrequent(const ElementwiseInstruction& function, Map map) {
  using Floats = typename Lanes::Floats;
  switch (function.op) {
    case ElementwiseOp::kHardswish:
      map([](Floats x) __attribute__((always_inline)) { return elementwise::Hardswish<Lanes>(x); });
      return true;
    case ElementwiseOp::kCodeSilu:
      map([](Floats x) __attribute__((always_inline)) { return elementwise::CodeSilu<Lanes>(x); });
      return true;
    case ElementwiseOp::kCodeGelu:
      map([](Floats x) __attribute__((always_inline)) { return elementwise::CodeGelu<Lanes>(x); });
      return true;
    case ElementwiseOp::kCodeGeluTanh:
      map([](Floats x) __attribute__((always_inline)) { return elementwise::CodeGeluTanh<Lanes>(x); });
      return true;
    default: return false;
  }
}
constexpr bool IsFrequent(ElementwiseOp op) {
  return MapFrequent<OneLane>({op}, [](auto) {});
}

}  // namespace

}  // namespace fuselage::kernels

#endif  // FUSELAGE_KERNELS_CORE_ACTIVATE_H_
