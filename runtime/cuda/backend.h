// Backend: the CUDA device of this process and the kernels for it. Whether there can be one is decided by the build:
// --config=cuda links it.
#ifndef FUSELAGE_RUNTIME_CUDA_BACKEND_H_
#define FUSELAGE_RUNTIME_CUDA_BACKEND_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/core/registry.h"
#include "runtime/cuda/device.h"

namespace fuselage::runtime::cuda {

class Backend {
 public:
  virtual ~Backend() = default;
  virtual Device& device() = 0;
  virtual const kernels::KernelRegistry& kernels() const = 0;
};

// FailedPrecondition says what is missing and what to do: this build's CUDA part, a driver, a device.
absl::StatusOr<std::unique_ptr<Backend>> OpenBackend();

}  // namespace fuselage::runtime::cuda

#endif  // FUSELAGE_RUNTIME_CUDA_BACKEND_H_
