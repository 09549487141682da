// Kernels of one operand that make codes of it pixel by pixel (int8.quantize, int8.lookup): threads share the pixels,
// and an image gets its halo and becomes space-to-depth blocks on the way, where its placement says so.
#ifndef FUSELAGE_KERNELS_INT8_QUANTIZE_PIXEL_CODES_H_
#define FUSELAGE_KERNELS_INT8_QUANTIZE_PIXEL_CODES_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "kernels/core/kernel.h"

namespace fuselage::int8::quantize {

class PixelLoop {
 public:
  // `pixels` of all images. Where the operand's order is kept, a pixel may as well be a code.
  PixelLoop(int64_t pixels, int64_t channels) : pixels(pixels), channels(channels) {}
  virtual ~PixelLoop() = default;

  // Writes pixels [begin, end), all channels of one after the other; x and y are whole tensors.
  virtual void Run(const void* x, uint8_t* y, int64_t begin, int64_t end) const = 0;

  const int64_t pixels, channels;
};

// Unimplemented: phase planes, and placements of what is no image.
absl::Status CheckPlacement(const kernels::KernelDesc& desc);
inline bool TakesPlacement(const kernels::KernelDesc& desc) { return CheckPlacement(desc).ok(); }

// For a placement that has been checked. `packed`: what the loop reads besides.
std::unique_ptr<kernels::Kernel> MakePixelCodes(const kernels::KernelDesc& desc, const char* variant,
                                                std::unique_ptr<const PixelLoop> loop,
                                                std::shared_ptr<const Tensor> packed = nullptr);

}  // namespace fuselage::int8::quantize

#endif  // FUSELAGE_KERNELS_INT8_QUANTIZE_PIXEL_CODES_H_
