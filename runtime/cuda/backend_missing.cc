#include "runtime/cuda/backend.h"

namespace fuselage::runtime::cuda {

absl::StatusOr<std::unique_ptr<Backend>> OpenBackend() {
  return absl::FailedPreconditionError(
      "this build has no CUDA backend; build it where the CUDA toolkit is, with bazel run --config=cuda //harness "
      "(docs/cuda.md)");
}

}  // namespace fuselage::runtime::cuda
