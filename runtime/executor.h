// Executor: a device as an executable sees it. Holds its memory, runs its steps. Each executable has one of its own.
#ifndef FUSELAGE_RUNTIME_EXECUTOR_H_
#define FUSELAGE_RUNTIME_EXECUTOR_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ir/base/status.h"
#include "runtime/schedule.h"

namespace fuselage::runtime {

// A step with its addresses: of a band, those of one turn.
struct BoundStep {
  const StepSpec* spec = nullptr;
  int index = 0;  // The spec's in its schedule.
  std::vector<kernels::ConstBuffer> inputs;
  std::vector<kernels::Buffer> outputs;
  kernels::Buffer scratch;

  std::string name() const { return absl::StrCat("%", spec->node, " (", spec->op, ")"); }  // For errors.
};

struct BoundProgram {
  std::vector<BoundStep> steps;
  std::vector<kernels::Buffer> inputs, outputs;  // The graph's, in the executor's memory; null on the host.
};

// One thread at work on one step, in seconds since the run began. Thread 0 is the caller.
struct StepSpan {
  int step = 0, thread = 0;
  double begin = 0, end = 0;
};

class Executor {
 public:
  virtual ~Executor() = default;

  // --- What a graph is compiled with.
  virtual absl::string_view name() const = 0;  // "CPU": whose kernels a graph needs.
  // Whether steps use the caller's tensors and the graph's constants where these lie, and may be reference evaluations.
  // Else they have places in the executor's memory, and a run copies.
  virtual bool on_host() const = 0;
  // Sets StepSpec::beside_next.
  virtual void PairSteps(absl::Span<StepSpec>) const {}

  // --- Memory, which lives as long as the executor.
  // Zeroed; `what` it is for. Null where `bytes` is 0.
  virtual absl::StatusOr<uint8_t*> Allocate(int64_t bytes, absl::string_view what) = 0;
  // Where steps find a constant: on the host, which has it in place, or in memory that executors of one device share.
  virtual absl::StatusOr<const uint8_t*> Place(const Tensor& constant) = 0;

  // --- Runs.
  // Once, before the first.
  virtual absl::Status Prepare(const BoundProgram&) { return absl::OkStatus(); }
  // One run, from `inputs` to `outputs`; to `seconds`, if not null, is added what each step of the schedule took.
  virtual absl::Status Run(const BoundProgram& program, absl::Span<const Tensor* const> inputs,
                           absl::Span<Tensor* const> outputs, std::vector<double>* seconds) = 0;
  // The same, for who wants to see it: which thread worked on which step when. By default one did, step after step, as
  // long as Run's `seconds` say.
  virtual absl::StatusOr<std::vector<StepSpan>> RunRecorded(const BoundProgram& program,
                                                            absl::Span<const Tensor* const> inputs,
                                                            absl::Span<Tensor* const> outputs);
  virtual std::optional<double> device_seconds() const { return std::nullopt; }  // See Executable.

 protected:
  // Errors name the step. Kernels find `parallel` and `stream` in their contexts.
  absl::Status RunStep(const BoundStep& step, kernels::Parallel* parallel, void* stream = nullptr);

 private:
  // A step's input to its output, both in the executor's memory or, on the host, anywhere: unchanged, or from this type
  // to the other layout.
  virtual absl::Status Copy(const void* from, void* to, int64_t bytes) = 0;
  virtual absl::Status Reorder(const TensorType& type, const void* from, void* to, kernels::Parallel& parallel) = 0;
};

}  // namespace fuselage::runtime

#endif  // FUSELAGE_RUNTIME_EXECUTOR_H_
