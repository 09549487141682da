// Which results a stage computes, as a constant that loops are compiled for. Everything is local to the including
// source: see loops.h.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CORE_OUTPUT_FORM_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CORE_OUTPUT_FORM_H_

#include "kernels/int8/conv2d/core/loops.h"

namespace fuselage::int8::conv2d {
namespace {

// Plain: see OutputStage. Activated: by a function.
enum class OutputKind { kCodes, kPlainCodes, kActivatedCodes, kFloat };

template <OutputKind kKind, bool kHasResidual>
struct OutputForm {
  static constexpr OutputKind kind = kKind;
  static constexpr bool residual = kHasResidual;
};

// use(form): decltype(form) is the stage's.
template <typename Use>
inline void WithOutputForm(const OutputStage& stage, Use use) {
  if (stage.is_float) return use(OutputForm<OutputKind::kFloat, false>());
  if (stage.plain) {
    return stage.has_residual ? use(OutputForm<OutputKind::kPlainCodes, true>())
                              : use(OutputForm<OutputKind::kPlainCodes, false>());
  }
  if (stage.function != nullptr) {
    return stage.has_residual ? use(OutputForm<OutputKind::kActivatedCodes, true>())
                              : use(OutputForm<OutputKind::kActivatedCodes, false>());
  }
  return stage.has_residual ? use(OutputForm<OutputKind::kCodes, true>())
                            : use(OutputForm<OutputKind::kCodes, false>());
}

}  // namespace
}  // namespace fuselage::int8::conv2d

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CORE_OUTPUT_FORM_H_
