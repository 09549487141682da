// int8.quantize: f32 -> codes, as ONNX's QuantizeLinear.
//
//   q = clamp(rne(x / s) + z, lo, hi)      true float32 division; NaN becomes z
//
// A row-major input of rank 4 (the graph's image) may become NHWC on the way; any other tensor keeps its order. An image
// also gets its halo and becomes space-to-depth blocks on the way, where its placement says so.
#ifndef FUSELAGE_KERNELS_INT8_QUANTIZE_QUANTIZE_H_
#define FUSELAGE_KERNELS_INT8_QUANTIZE_QUANTIZE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "kernels/core/kernel.h"
#include "kernels/core/registry.h"
#include "kernels/core/variant.h"
#include "kernels/int8/quantize/quantize_params.h"

namespace fuselage::int8::quantize {

// Quantizes pixels [begin, end) of the images * pixels, all channels; x and y are whole tensors.
using Function = void(const Params& params, const float* x, uint8_t* y, int64_t begin, int64_t end);
using Variant = kernels::Variant<Params, Function>;

absl::Span<const Variant> Variants();

absl::StatusOr<Params> MakeParams(const kernels::KernelDesc& desc);
absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc);
void Register(kernels::KernelRegistry& registry);

FUSELAGE_VARIANTS(Function, Run)

}  // namespace fuselage::int8::quantize

#endif  // FUSELAGE_KERNELS_INT8_QUANTIZE_QUANTIZE_H_
