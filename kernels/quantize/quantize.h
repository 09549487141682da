// quantize and dequantize of the IR (ir/ops/quantize), to the bits of their reference evaluation:
//
//   quantize(x, scale?, zero_point?)     q = clamp(rne(x / s) + z)      NaN becomes z
//   dequantize(q, scale?, zero_point?)   x = float(q - z) * s
//
// Codes of u8 and i8 with one scale that is known run on the kernels of int8.quantize and int8.dequantize. All others
// run here, row by row: i16 and i32 codes, i32 to quantize, a scale for each index along an axis, scales and zero
// points that are computed (checked in each run).
#ifndef FUSELAGE_KERNELS_QUANTIZE_QUANTIZE_H_
#define FUSELAGE_KERNELS_QUANTIZE_QUANTIZE_H_

#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "ir/base/dtype.h"
#include "kernels/core/kernel.h"
#include "kernels/core/registry.h"
#include "kernels/core/variant.h"

namespace fuselage::quantize {

struct Form {
  DType from = DType::kF32, to = DType::kU8;  // To f32: dequantizes.
};

// n elements: x[i * x_stride] becomes y[i * y_stride] by scales[i * param_stride] and zero_points[i * param_stride].
struct Row {
  const void* x = nullptr;
  void* y = nullptr;
  const float* scales = nullptr;
  const int32_t* zero_points = nullptr;
  int64_t n = 0, x_stride = 1, y_stride = 1, param_stride = 0;
};

using Function = void(const Form& form, const Row& row);
using Variant = kernels::Variant<Form, Function>;

absl::Span<const Variant> Variants();

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc);
void Register(kernels::KernelRegistry& registry);

FUSELAGE_VARIANTS(Function, Run)

}  // namespace fuselage::quantize

#endif  // FUSELAGE_KERNELS_QUANTIZE_QUANTIZE_H_
