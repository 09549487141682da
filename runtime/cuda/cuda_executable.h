// CudaExecutable: a graph bound to CUDA kernels, one planned arena on the device, and one CUDA graph that runs it.
//
// Create plans as the CPU's executable does, runs the steps once one by one, so that an error names its node, then
// captures them. A run copies the inputs to the device from pinned memory, launches the graph, and copies back.
#ifndef FUSELAGE_RUNTIME_CUDA_CUDA_EXECUTABLE_H_
#define FUSELAGE_RUNTIME_CUDA_CUDA_EXECUTABLE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "ir/graph.h"
#include "kernels/core/registry.h"
#include "runtime/cuda/device.h"
#include "runtime/executable.h"

namespace fuselage::runtime::cuda {

struct CudaExecutableOptions {
  int64_t max_memory_bytes = 0;  // 0: no limit. Arena and weights above it: ResourceExhausted.
};

// Arena and weights are in device memory; the arena holds inputs and outputs too. While profiling, another graph runs:
// the same steps with an event between them.
class CudaExecutable : public Executable {
 public:
  // Every call must have a kernel in `kernels`. Unimplemented: the list of all nodes that have none. Other errors: see
  // Device. `device` must outlive the executable; graph and kernels need not.
  static absl::StatusOr<std::unique_ptr<CudaExecutable>> Create(const ir::Graph& graph,
                                                                const kernels::KernelRegistry& kernels, Device* device,
                                                                const CudaExecutableOptions& options = {});

  // The last run's time between events before and after the graph: without the copies of inputs and outputs. 0 while
  // profiling.
  virtual double device_seconds() const = 0;
};

}  // namespace fuselage::runtime::cuda

#endif  // FUSELAGE_RUNTIME_CUDA_CUDA_EXECUTABLE_H_
