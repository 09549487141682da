// For sources of device code.
#ifndef FUSELAGE_KERNELS_INT8_QUANTIZE_CUDA_LAUNCH_PIXEL_GROUPS_H_
#define FUSELAGE_KERNELS_INT8_QUANTIZE_CUDA_LAUNCH_PIXEL_GROUPS_H_

#include "kernels/cuda/launch.h"
#include "kernels/int8/quantize/cuda/pixel_groups.h"

namespace fuselage::int8::quantize::cuda {

// Launches Kernel<kPixelBytes>, whose parameters have `groups`.
template <template <int> typename Kernel, typename Params>
void LaunchPixelGroups(const Params& params, void* stream) {
  const auto launch = [&](auto kernel) {
    using K = decltype(kernel);
    fuselage::cuda::Launch<K>({params.groups.items.blocks, 1, 1}, K::kSharedBytes, params, stream);
  };
  switch (params.groups.pixel_bytes) {
    case 1: return launch(Kernel<1>());
    case 3: return launch(Kernel<3>());
    case 4: return launch(Kernel<4>());
    default: return launch(Kernel<0>());
  }
}

}  // namespace fuselage::int8::quantize::cuda

#endif  // FUSELAGE_KERNELS_INT8_QUANTIZE_CUDA_LAUNCH_PIXEL_GROUPS_H_
