// From a graph to what runs it: apart from what runs, which a program without graphs links alone.
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/executable.h"
#include "runtime/host_executor.h"
#include "runtime/program.h"
#include "runtime/schedule.h"

namespace fuselage::runtime {
namespace {

absl::StatusOr<std::shared_ptr<const Program>> Compile(const ir::Graph& graph, const kernels::KernelRegistry& kernels,
                                                       const Executor& executor, int threads,
                                                       const ExecutableOptions& options) {
  ASSIGN_OR_RETURN(Schedule schedule, MakeSchedule(graph, kernels, executor,
                                                   {options.isa, threads, options.max_memory_bytes, options.weights,
                                                    options.cache_bytes}));
  std::shared_ptr<const Program> program = PlanProgram(std::move(schedule), executor.on_host(), threads);
  const int64_t weights = program->schedule.weight_bytes, wanted = program->arena_bytes + weights;
  if (options.max_memory_bytes > 0 && wanted > options.max_memory_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "graph @", graph.name(), " takes ", wanted, " bytes", executor.on_host() ? "" : " of device memory", " (",
        program->arena_bytes, " for activations, ", weights, " for weights), the limit is ", options.max_memory_bytes));
  }
  return program;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Program>> MakeProgram(const ir::Graph& graph,
                                                           const kernels::KernelRegistry& kernels, int threads,
                                                           const ExecutableOptions& options) {
  return Compile(graph, kernels, HostExecutor(nullptr), threads, options);
}

absl::StatusOr<std::unique_ptr<Executable>> Executable::Create(const ir::Graph& graph,
                                                               const kernels::KernelRegistry& kernels, ThreadPool* pool,
                                                               const ExecutableOptions& options) {
  FUSELAGE_CHECK(pool != nullptr);
  ASSIGN_OR_RETURN(std::shared_ptr<const Program> program, MakeProgram(graph, kernels, pool->threads(), options));
  return Create(std::move(program), pool);
}

absl::StatusOr<std::unique_ptr<Executable>> Executable::Create(const ir::Graph& graph,
                                                               const kernels::KernelRegistry& kernels,
                                                               std::unique_ptr<Executor> executor,
                                                               const ExecutableOptions& options) {
  ASSIGN_OR_RETURN(std::shared_ptr<const Program> program, Compile(graph, kernels, *executor, /*threads=*/1, options));
  return Bind(std::move(program), std::move(executor));
}

}  // namespace fuselage::runtime
