// Rows for tables of variants: an algorithm with the inner loops of an instruction set.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_ROWS_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_ROWS_H_

#include "kernels/int8/conv2d/conv2d.h"
#include "kernels/int8/conv2d/depthwise/depthwise.h"
#include "kernels/int8/conv2d/direct/direct.h"
#include "kernels/int8/conv2d/direct/taps.h"
#include "kernels/int8/conv2d/tiled/tiled.h"
#include "kernels/int8/conv2d/winograd/winograd.h"

namespace fuselage::int8::conv2d {

template <direct::Loops (*kLoops)()>
constexpr Variant Direct(const char* name, kernels::Isa isa, bool (*worthwhile)(const Problem&) = nullptr) {
  return {name, isa, direct::Supports, worthwhile,
          /*make=*/[](const Problem& problem) { return direct::Make(problem, kLoops()); }};
}

template <direct::Loops (*kLoops)()>
constexpr Variant Few(const char* name, kernels::Isa isa) {
  return {name, isa, direct::SupportsFew,
          /*worthwhile=*/[](const Problem& problem) { return direct::WorthwhileFew(problem, kLoops()); },
          /*make=*/[](const Problem& problem) { return direct::MakeFew(problem, kLoops()); }};
}

template <direct::Loops (*kLoops)()>
constexpr Variant Taps(const char* name, kernels::Isa isa) {
  return {name, isa, direct::SupportsTaps, direct::WorthwhileTaps,
          /*make=*/[](const Problem& problem) { return direct::MakeTaps(problem, kLoops()); }};
}

template <winograd::Loops (*kLoops)()>
constexpr Variant Winograd(const char* name, kernels::Isa isa) {
  return {name, isa, /*supports=*/winograd::Supports,
          /*worthwhile=*/[](const Problem& problem) { return winograd::Worthwhile(problem, kLoops()); },
          /*make=*/[](const Problem& problem) { return winograd::Make(problem, kLoops()); }};
}

template <depthwise::Loops (*kLoops)(), direct::Loops (*kDirect)()>
constexpr Variant Depthwise(const char* name, kernels::Isa isa, bool (*supports)(const Problem&)) {
  return {name, isa, supports, /*worthwhile=*/nullptr,
          /*make=*/[](const Problem& problem) { return depthwise::Make(problem, kLoops(), kDirect()); }};
}

template <tiled::Loops (*kLoops)()>
constexpr Variant Tiled(const char* name, kernels::Isa isa) {
  return {name,
          isa,
          /*supports=*/tiled::Supports,
          /*worthwhile=*/tiled::Worthwhile,
          /*make=*/[](const Problem& problem) { return tiled::Make(problem, kLoops()); },
          /*preferred_input_placement=*/tiled::PreferredInputPlacement,
          /*computes_bands=*/tiled::ComputesBands};
}

}  // namespace fuselage::int8::conv2d

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_ROWS_H_
