// What CUDA's errors mean as a Status. Needs no toolkit.
#ifndef FUSELAGE_KERNELS_CUDA_ERROR_STATUS_H_
#define FUSELAGE_KERNELS_CUDA_ERROR_STATUS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace fuselage::cuda {

// "<call>: <text> (<error>)" of a cudaError_t other than success. ResourceExhausted: out of memory. Unavailable: no
// device or driver. Unimplemented: no code for this device. DataLoss: a kernel crashed or the device is gone, and no
// later call of this process will succeed. Internal: the rest.
absl::Status ErrorStatus(int error, absl::string_view call, absl::string_view text);

}  // namespace fuselage::cuda

#endif  // FUSELAGE_KERNELS_CUDA_ERROR_STATUS_H_
