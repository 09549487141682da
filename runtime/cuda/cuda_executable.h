// An executable on a CUDA device: one planned arena there, and one CUDA graph that runs the steps.
//
// Creation runs the steps once one by one, so that an error names its node, then captures them. A run copies the inputs
// to the device from pinned memory, launches the graph, and copies back. While profiling, another graph runs: the same
// steps with an event between them.
#ifndef FUSELAGE_RUNTIME_CUDA_CUDA_EXECUTABLE_H_
#define FUSELAGE_RUNTIME_CUDA_CUDA_EXECUTABLE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "ir/graph.h"
#include "kernels/core/parallel.h"
#include "kernels/core/registry.h"
#include "runtime/cuda/device.h"
#include "runtime/executable.h"

namespace fuselage::runtime::cuda {

struct CudaExecutableOptions {
  // Of device memory, for weights and the arena, which holds inputs and outputs too. Weights count in full, though
  // executables share them: kernels' (kernels/cuda/shared_uploads.h) and the graph's constants. 0: no limit.
  int64_t max_memory_bytes = 0;
  // Whose threads copy inputs and outputs to and from pinned memory; outlives the executable. Null: the caller's alone.
  kernels::Parallel* host = nullptr;
};

// Every call must have a kernel in `kernels`. Unimplemented: the list of all nodes that have none. ResourceExhausted:
// arena and weights take more than max_memory_bytes. Other errors: see Device. `device` must outlive the executable;
// graph and kernels need not.
absl::StatusOr<std::unique_ptr<Executable>> CreateExecutable(const ir::Graph& graph,
                                                             const kernels::KernelRegistry& kernels, Device* device,
                                                             const CudaExecutableOptions& options = {});

}  // namespace fuselage::runtime::cuda

#endif  // FUSELAGE_RUNTIME_CUDA_CUDA_EXECUTABLE_H_
