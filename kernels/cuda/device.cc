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

DeviceBuffer::~DeviceBuffer() { cudaFree(data_); }

absl::StatusOr<DeviceBuffer> DeviceBuffer::Allocate(int64_t bytes, absl::string_view what) {
  DeviceBuffer buffer;
  RETURN_IF_ERROR(
      ToStatus(cudaMalloc(&buffer.data_, bytes), absl::StrCat("cudaMalloc of ", bytes, " bytes for ", what)));
  buffer.bytes_ = bytes;
  return buffer;
}

absl::StatusOr<DeviceBuffer> DeviceBuffer::Upload(const void* data, int64_t bytes, absl::string_view what) {
  ASSIGN_OR_RETURN(DeviceBuffer buffer, Allocate(bytes, what));
  RETURN_IF_ERROR(ToStatus(cudaMemcpy(buffer.data_, data, bytes, cudaMemcpyHostToDevice),
                           absl::StrCat("upload of ", bytes, " bytes for ", what)));
  return buffer;
}

}  // namespace fuselage::cuda
