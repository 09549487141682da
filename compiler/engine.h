// Engine: a graph ready to run, on whatever backend. One of the runtime's executables, or the interpreter.
#ifndef FUSELAGE_COMPILER_ENGINE_H_
#define FUSELAGE_COMPILER_ENGINE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/graph.h"
#include "kernels/core/registry.h"
#include "runtime/cuda/backend.h"
#include "runtime/executable.h"

namespace fuselage::compiler {

class Engine {
 public:
  virtual ~Engine() = default;

  // A tensor for each placeholder in, one for each of the graph's outputs out, of exactly these types. One run at a
  // time.
  virtual absl::Status RunInto(absl::Span<const Tensor* const> inputs, absl::Span<Tensor* const> outputs) = 0;
  virtual const std::vector<TensorType>& input_types() const = 0;
  virtual const std::vector<TensorType>& output_types() const = 0;

  // Into tensors of the engine, which are valid until the next Run.
  absl::StatusOr<const std::vector<Tensor>*> Run(absl::Span<const Tensor> inputs);

  virtual int64_t arena_bytes() const = 0;
  virtual int64_t weight_bytes() const = 0;
  // Null where the backend has none.
  virtual runtime::Executable* executable() = 0;
  // The op of each step that has no kernel and runs by reference evaluation, in order.
  virtual std::vector<std::string> ReferenceOps() const = 0;
  // What the device took for the last run, without the copies from and to the host. None where the host computes.
  virtual std::optional<double> device_ms() const { return std::nullopt; }

  int64_t batch() const { return input_types()[0].shape[0]; }

 private:
  std::vector<Tensor> outputs_;
  std::vector<Tensor*> output_pointers_;
  std::vector<const Tensor*> input_pointers_;
};

struct EngineOptions {
  std::string backend = "cpu";             // Or "reference", or "cuda":
  runtime::cuda::Backend* cuda = nullptr;  // outlives the engine.
  kernels::Isa isa = kernels::BestIsa();
  int64_t max_memory_bytes = 0;
  // See runtime::ExecutableOptions.
  kernels::PackedWeights* weights = nullptr;
  int64_t cache_bytes = runtime::CoreCacheBytes();
};

// The graph need not outlive the engine; `pool` must. A CUDA engine uses its backend's kernels. `batch` > 0 changes the
// graph's batch size.
absl::StatusOr<std::unique_ptr<Engine>> MakeEngine(const ir::Graph& graph, int64_t batch,
                                                   const kernels::KernelRegistry& kernels, runtime::ThreadPool* pool,
                                                   const EngineOptions& options);

// The CPU's, of a program that it shares with others. `pool` must outlive it.
absl::StatusOr<std::unique_ptr<Engine>> MakeEngine(std::shared_ptr<const runtime::Program> program,
                                                   runtime::ThreadPool* pool);

}  // namespace fuselage::compiler

#endif  // FUSELAGE_COMPILER_ENGINE_H_
