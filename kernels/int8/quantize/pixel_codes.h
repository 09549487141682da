// Kernels of one operand that make codes of it pixel by pixel (int8.quantize, int8.lookup): threads share the pixels,
// and an image gets its halo and becomes space-to-depth blocks on the way, where its placement says so.
#ifndef FUSELAGE_KERNELS_INT8_QUANTIZE_PIXEL_CODES_H_
#define FUSELAGE_KERNELS_INT8_QUANTIZE_PIXEL_CODES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "kernels/core/kernel.h"

namespace fuselage::int8::quantize {

struct PixelLoop {
  std::string variant;
  // Of all images. Where the operand's order is kept, a pixel may as well be a code.
  int64_t pixels = 0, channels = 1;
  // Writes pixels [begin, end), all channels of one after the other; x and y are whole tensors.
  std::function<void(const void* x, uint8_t* y, int64_t begin, int64_t end)> run;
  std::shared_ptr<const Tensor> packed = nullptr;  // What `run` reads besides.
};

// Unimplemented: phase planes, and placements of what is no image.
absl::Status CheckPlacement(const kernels::KernelDesc& desc);
inline bool TakesPlacement(const kernels::KernelDesc& desc) { return CheckPlacement(desc).ok(); }

// For a placement that has been checked.
std::unique_ptr<kernels::Kernel> MakePixelCodes(const kernels::KernelDesc& desc, PixelLoop loop);

}  // namespace fuselage::int8::quantize

#endif  // FUSELAGE_KERNELS_INT8_QUANTIZE_PIXEL_CODES_H_
