#include "kernels/cuda/device_buffer.h"

#include "ir/base/status.h"
#include "kernels/cuda/shared_uploads.h"

namespace fuselage::cuda {

absl::StatusOr<DeviceBuffer> DeviceBuffer::Upload(const void* data, int64_t bytes, absl::string_view what) {
  static auto* const uploads = new SharedUploads();
  const absl::string_view content(static_cast<const char*>(data), static_cast<size_t>(bytes));
  DeviceBuffer buffer;
  buffer.bytes_ = bytes;
  ASSIGN_OR_RETURN(buffer.data_, uploads->Get(content, [&]() -> absl::StatusOr<std::shared_ptr<void>> {
    ASSIGN_OR_RETURN(const DeviceBuffer made, Allocate(bytes, what));
    RETURN_IF_ERROR(made.Write(data, what));
    return made.data_;
  }));
  return buffer;
}

}  // namespace fuselage::cuda
