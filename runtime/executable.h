// Executable: a graph bound to kernels and one planned arena. A run allocates nothing, except in steps that run an op's
// reference evaluation, and for oneDNN's own bookkeeping in FP32 steps (kernels/fp32/fp32.h).
#ifndef FUSELAGE_RUNTIME_EXECUTABLE_H_
#define FUSELAGE_RUNTIME_EXECUTABLE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/graph.h"
#include "kernels/core/registry.h"
#include "runtime/bands.h"
#include "runtime/executor.h"
#include "runtime/thread_pool.h"

namespace fuselage::runtime {

struct ExecutableOptions {
  kernels::Isa isa = kernels::BestIsa();
  int64_t max_memory_bytes = 0;  // 0: no limit. Arena and weights above it: ResourceExhausted.
  // Where programs share what their kernels pack; null: the kernels of one do. Need not outlive them.
  kernels::PackedWeights* weights = nullptr;
  // A core's own cache, in which a batch's items stay from step to step (runtime/bands.h); 0: each step takes them all.
  int64_t cache_bytes = CoreCacheBytes();
};

// What one step of the schedule is, and what it cost in the runs since ResetProfile.
struct StepProfile {
  std::string node;  // "" for a layout change that the runtime inserted.
  std::string op;    // "int8.conv2d", or "reorder".
  StepKind kind = StepKind::kKernel;
  // Kernel::variant(), or "reference" for an op that only its reference evaluation runs. In a band with its turns:
  // "avx512_vnni, 16 turns".
  std::string variant;
  std::string layout;   // How the result lies, where it has rank 4: "row-major", "nhwc", "nhwc, halo 1".
  double macs = 0;
  int64_t bytes = 0;            // Operands, results and weights, each once.
  std::vector<double> seconds;  // One entry per profiled run.
  std::vector<int> reads;       // Steps whose results it reads, each once.
};

// Where a buffer lies in the arena while steps `first` to `last` run, both included.
struct ArenaBlock {
  int64_t offset = 0, bytes = 0;
  int first = 0, last = 0;
  int writer = -1;       // The first step that writes it; -1: none, an input that is copied to a device.
  bool scratch = false;  // The writer's own, not a value.
};

// What no run changes: the schedule of a graph, its kernels with their packed weights, the plan of its memory.
class Program;

// For the CPU and pools of at most `threads` threads. Every call must have a kernel in `kernels`, or be a float op that
// its reference evaluation can run (variant "reference"). Unimplemented: the list of all nodes that have neither.
// The graph need not outlive the program; `kernels` is used here only.
absl::StatusOr<std::shared_ptr<const Program>> MakeProgram(const ir::Graph& graph,
                                                           const kernels::KernelRegistry& kernels, int threads,
                                                           const ExecutableOptions& options = {});

class Executable {
 public:
  // An arena for the program, and what a run needs. Any number of executables share a program, and may run at once.
  // `pool` must outlive it.
  static absl::StatusOr<std::unique_ptr<Executable>> Create(std::shared_ptr<const Program> program, ThreadPool* pool);
  // Makes a program of its own, for all threads of the pool.
  static absl::StatusOr<std::unique_ptr<Executable>> Create(const ir::Graph& graph,
                                                            const kernels::KernelRegistry& kernels, ThreadPool* pool,
                                                            const ExecutableOptions& options = {});
  // On another device. Every call must have a kernel in `kernels`. An error of the executor is returned as it is.
  static absl::StatusOr<std::unique_ptr<Executable>> Create(const ir::Graph& graph,
                                                            const kernels::KernelRegistry& kernels,
                                                            std::unique_ptr<Executor> executor,
                                                            const ExecutableOptions& options = {});
  virtual ~Executable() = default;

  virtual const std::vector<TensorType>& input_types() const = 0;   // Row-major.
  virtual const std::vector<TensorType>& output_types() const = 0;  // Row-major.

  // Reads `inputs` and writes `outputs`: row-major tensors of exactly these types, each output a tensor of its own.
  // One run at a time.
  virtual absl::Status Run(absl::Span<const Tensor* const> inputs, absl::Span<Tensor* const> outputs) = 0;
  // The same by the tensors' data, for a caller that has checked their types. On the CPU only.
  virtual absl::Status RunAt(absl::Span<const void* const> inputs, absl::Span<void* const> outputs) = 0;

  // A run that says which thread worked on which step when: those of a thread in order, thread after thread. Reads the
  // clock twice for each task of a kernel, which other runs do not.
  virtual absl::StatusOr<std::vector<StepSpan>> RunRecorded(absl::Span<const Tensor* const> inputs,
                                                            absl::Span<Tensor* const> outputs) = 0;

  virtual int64_t arena_bytes() const = 0;
  virtual const std::vector<ArenaBlock>& arena() const = 0;  // What lies in it, by the plan.
  virtual int64_t weight_bytes() const = 0;
  // What the last run took on a device, without the copies of inputs and outputs: 0 while profiling. None on the CPU.
  virtual std::optional<double> device_seconds() const = 0;

  // Times each step while on; off by default, since two clock reads a step are not free.
  virtual void EnableProfile(bool on) = 0;
  virtual const std::vector<StepProfile>& profile() const = 0;
  virtual void ResetProfile() = 0;
};

// Runs once with fresh outputs; for tests and tools.
absl::StatusOr<std::vector<Tensor>> RunOnce(Executable& executable, absl::Span<const Tensor> inputs);

}  // namespace fuselage::runtime

#endif  // FUSELAGE_RUNTIME_EXECUTABLE_H_
