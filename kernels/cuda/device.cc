#include "kernels/cuda/device.h"

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "kernels/cuda/error_status.h"

namespace fuselage::cuda {

absl::Status ToStatus(cudaError_t error, absl::string_view what) {
  if (error == cudaSuccess) return absl::OkStatus();
  return ErrorStatus(error, what, cudaGetErrorString(error));
}

absl::StatusOr<DeviceProperties> CurrentDevice() {
  int device = 0;
  RETURN_IF_ERROR(ToStatus(cudaGetDevice(&device), "cudaGetDevice"));
  DeviceProperties properties;
  int major = 0, minor = 0;
  const struct {
    cudaDeviceAttr attribute;
    int* value;
  } attributes[] = {
      {cudaDevAttrComputeCapabilityMajor, &major},
      {cudaDevAttrComputeCapabilityMinor, &minor},
      {cudaDevAttrMultiProcessorCount, &properties.multiprocessors},
      {cudaDevAttrMaxSharedMemoryPerMultiprocessor, &properties.shared_bytes_per_multiprocessor},
      {cudaDevAttrMaxSharedMemoryPerBlockOptin, &properties.shared_bytes_per_block},
      {cudaDevAttrMaxThreadsPerMultiProcessor, &properties.threads_per_multiprocessor},
  };
  for (const auto& attribute : attributes) {
    RETURN_IF_ERROR(
        ToStatus(cudaDeviceGetAttribute(attribute.value, attribute.attribute, device), "cudaDeviceGetAttribute"));
  }
  properties.sm = 10 * major + minor;
  return properties;
}

absl::StatusOr<DeviceBuffer> DeviceBuffer::Allocate(int64_t bytes, absl::string_view what) {
  void* data = nullptr;
  RETURN_IF_ERROR(ToStatus(cudaMalloc(&data, bytes), absl::StrCat("cudaMalloc of ", bytes, " bytes for ", what)));
  DeviceBuffer buffer;
  buffer.data_.reset(data, cudaFree);
  buffer.bytes_ = bytes;
  return buffer;
}

absl::Status DeviceBuffer::Write(const void* data, absl::string_view what) const {
  cudaError_t error = cudaMemcpy(data_.get(), data, bytes_, cudaMemcpyHostToDevice);
  // Which returns once it has read pageable memory.
  if (error == cudaSuccess) error = cudaStreamSynchronize(nullptr);
  return ToStatus(error, absl::StrCat("upload of ", bytes_, " bytes for ", what));
}

}  // namespace fuselage::cuda
