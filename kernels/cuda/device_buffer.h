// The current CUDA device: its properties, and memory on it. Without CUDA's headers: in tests the emulation's device
// takes its place (testing/emulated.cc).
#ifndef FUSELAGE_KERNELS_CUDA_DEVICE_BUFFER_H_
#define FUSELAGE_KERNELS_CUDA_DEVICE_BUFFER_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/cuda/device_properties.h"

namespace fuselage::cuda {

// On the current device; an error where there is none.
absl::StatusOr<DeviceProperties> CurrentDevice();

// Memory on the current device, 256-byte aligned, of all copies of the buffer: it goes with the last.
class DeviceBuffer {
 public:
  // `what` it is for, as errors say it: "the weights of int8.conv2d". Contents undefined.
  static absl::StatusOr<DeviceBuffer> Allocate(int64_t bytes, absl::string_view what);
  // With a copy of `bytes` bytes of host memory. Constants, of which the device has one copy (SharedUploads).
  static absl::StatusOr<DeviceBuffer> Upload(const void* data, int64_t bytes, absl::string_view what);

  // A copy of bytes() bytes of host memory, complete on return.
  absl::Status Write(const void* data, absl::string_view what) const;

  void* data() const { return data_.get(); }
  int64_t bytes() const { return bytes_; }

 private:
  std::shared_ptr<void> data_;
  int64_t bytes_ = 0;
};

}  // namespace fuselage::cuda

#endif  // FUSELAGE_KERNELS_CUDA_DEVICE_BUFFER_H_
