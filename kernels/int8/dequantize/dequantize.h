// int8.dequantize: codes -> f32, as ONNX's DequantizeLinear.
//
//   y = s * float(q - z)
//
// NHWC codes may become a row-major result on the way, and may be channels of a wider tensor; any other tensor keeps
// its order.
#ifndef FUSELAGE_KERNELS_INT8_DEQUANTIZE_DEQUANTIZE_H_
#define FUSELAGE_KERNELS_INT8_DEQUANTIZE_DEQUANTIZE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "kernels/core/kernel.h"
#include "kernels/core/registry.h"
#include "kernels/core/variant.h"
#include "kernels/int8/dequantize/dequantize_params.h"

namespace fuselage::int8::dequantize {

// Dequantizes pixels [begin, end) of the images * pixels, all channels; x and y are whole tensors.
using Function = void(const Params& params, const uint8_t* x, float* y, int64_t begin, int64_t end);
using Variant = kernels::Variant<Params, Function>;

absl::Span<const Variant> Variants();

absl::StatusOr<Params> MakeParams(const kernels::KernelDesc& desc);
absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc);
void Register(kernels::KernelRegistry& registry);

FUSELAGE_VARIANTS(Function, Run)

}  // namespace fuselage::int8::dequantize

#endif  // FUSELAGE_KERNELS_INT8_DEQUANTIZE_DEQUANTIZE_H_
