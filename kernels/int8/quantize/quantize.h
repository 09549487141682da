// int8.quantize: f32 -> codes, as ONNX's QuantizeLinear.
//
//   q = clamp(rne(x / s) + z, lo, hi)      true float32 division; NaN becomes z
//
// A row-major input of rank 4 (the graph's image) becomes NHWC on the way; any other tensor keeps its order. An image
// also gets its halo and becomes space-to-depth blocks on the way, where its placement says so.
#ifndef FUSELAGE_KERNELS_INT8_QUANTIZE_QUANTIZE_H_
#define FUSELAGE_KERNELS_INT8_QUANTIZE_QUANTIZE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "kernels/core/kernel.h"
#include "kernels/core/registry.h"
#include "kernels/core/variant.h"

namespace fuselage::int8::quantize {

// Zero point and clamp are those of the unsigned form (see UnsignedForm).
struct Params {
  // x is [images][channels][pixels], y is [images][pixels][channels]; a tensor that keeps its order has one channel
  // and is one image.
  int64_t images = 1, channels = 1, pixels = 0;
  float scale = 1;
  uint8_t flip = 0;
  int32_t zero_point = 0;
  int32_t lo = 0, hi = 255;
};

// Quantizes pixels [begin, end) of the images * pixels, all channels; x and y are whole tensors.
using Function = void(const Params& params, const float* x, uint8_t* y, int64_t begin, int64_t end);
using Variant = kernels::Variant<Params, Function>;

absl::Span<const Variant> Variants();

absl::StatusOr<Params> MakeParams(const kernels::KernelDesc& desc);
absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc);
void Register(kernels::KernelRegistry& registry);

namespace scalar {
Function Run;
}
namespace avx2 {
Function Run;
}
namespace avx512_vnni {
Function Run;
}
namespace avx512_vnni_emulated {  // Linked into tests only.
Function Run;
}

}  // namespace fuselage::int8::quantize

#endif  // FUSELAGE_KERNELS_INT8_QUANTIZE_QUANTIZE_H_
