// PixelGroups of a call, and where its codes may lie.
#ifndef FUSELAGE_KERNELS_INT8_QUANTIZE_CUDA_PIXEL_GROUPS_OF_H_
#define FUSELAGE_KERNELS_INT8_QUANTIZE_CUDA_PIXEL_GROUPS_OF_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/core/kernel.h"
#include "kernels/cuda/device_properties.h"
#include "kernels/int8/quantize/cuda/pixel_groups.h"

namespace fuselage::int8::quantize::cuda {

// Dense, or an image's pixels that lie further apart than they have channels (Placement::pixel_bytes, such as 4 for
// three); else Unimplemented.
absl::Status CheckPixelPlacement(const kernels::KernelDesc& desc);

// For a placement that has been checked; where that is not dense, of the image's channels.
absl::StatusOr<PixelGroups> PixelGroupsOf(const kernels::KernelDesc& desc, int64_t images, int64_t channels,
                                          int64_t pixels, const fuselage::cuda::DeviceProperties& device);

}  // namespace fuselage::int8::quantize::cuda

#endif  // FUSELAGE_KERNELS_INT8_QUANTIZE_CUDA_PIXEL_GROUPS_OF_H_
