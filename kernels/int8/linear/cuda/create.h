// The kernel itself and a layer's constants, for kernels that are made of them.
#ifndef FUSELAGE_KERNELS_INT8_LINEAR_CUDA_CREATE_H_
#define FUSELAGE_KERNELS_INT8_LINEAR_CUDA_CREATE_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "kernels/core/kernel.h"
#include "kernels/cuda/device_buffer.h"
#include "kernels/int8/linear/cuda/layer.h"

namespace fuselage::int8::linear::cuda {

// A layer's constants on the current device.
struct DeviceLayer {
  fuselage::cuda::DeviceBuffer memory;
  Layer layer;
  const int32_t* moved_addend = nullptr;  // For x less 128: u8 codes as i8.

  // Errors: those of linear::CheckedEpilogue, and the device's.
  static absl::StatusOr<DeviceLayer> Upload(const kernels::KernelDesc& desc);
};

struct Options {
  // Multiply-accumulates from which on cuBLASLt computes. Packing u8 codes and finishing sums are two launches more,
  // and the sums make a trip through memory: some 10 us, in which our own kernel should do this many. Not measured.
  int64_t cublaslt_macs = int64_t{1} << 30;
  // The tile of our own kernel; otherwise the wide one where it fills the device.
  std::optional<bool> wide;
};
absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc, const Options& options = {});

}  // namespace fuselage::int8::linear::cuda

#endif  // FUSELAGE_KERNELS_INT8_LINEAR_CUDA_CREATE_H_
