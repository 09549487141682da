// The current CUDA device: its properties, and memory on it. Without CUDA's headers: in tests the emulation's device
// takes its place (testing/emulated.cc).
#ifndef FUSELAGE_KERNELS_CUDA_DEVICE_BUFFER_H_
#define FUSELAGE_KERNELS_CUDA_DEVICE_BUFFER_H_

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/cuda/device_properties.h"

namespace fuselage::cuda {

// On the current device; an error where there is none.
absl::StatusOr<DeviceProperties> CurrentDevice();

// Owned memory on the current device, 256-byte aligned.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer&& other) noexcept { *this = std::move(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  // `what` it is for, as errors say it: "the weights of int8.conv2d". Contents undefined.
  static absl::StatusOr<DeviceBuffer> Allocate(int64_t bytes, absl::string_view what);
  // With a copy of `bytes` bytes of host memory, complete on return.
  static absl::StatusOr<DeviceBuffer> Upload(const void* data, int64_t bytes, absl::string_view what);

  void* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace fuselage::cuda

#endif  // FUSELAGE_KERNELS_CUDA_DEVICE_BUFFER_H_
