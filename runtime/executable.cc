#include "runtime/executable.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "runtime/memory_plan.h"
#include "runtime/reorder.h"
#include "runtime/schedule.h"
#include "runtime/span_recorder.h"

namespace fuselage::runtime {

class Program {
 public:
  Schedule schedule;
  int threads = 1;
  // Of each buffer, in the arena; of a constant, in a block of their own. What the host has in place has none.
  std::vector<int64_t> offsets;
  std::vector<ArenaBlock> arena;
  int64_t arena_bytes = 0, constant_bytes = 0;
};

namespace {

using kernels::Buffer;
using kernels::ConstBuffer;
using Home = BufferSpec::Home;

int64_t Aligned(int64_t bytes) { return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment; }

// Inputs arrive before the first step, outputs leave after the last. What one of two steps that run beside each other
// uses, lives during both.
void PlanBuffers(bool on_host, Program* program) {
  const Schedule& schedule = program->schedule;
  const int last_step = std::max(0, static_cast<int>(schedule.steps.size()) - 1);
  const auto beside_next = [&](int step) { return step >= 0 && step < last_step && schedule.steps[step].beside_next; };
  std::vector<Lifetime> lifetimes;
  std::vector<int> planned;  // The buffer of each lifetime.
  program->offsets.resize(schedule.buffers.size());
  for (size_t i = 0; i < schedule.buffers.size(); ++i) {
    const BufferSpec& buffer = schedule.buffers[i];
    if (on_host && buffer.home != Home::kArena) continue;
    if (buffer.home == Home::kConstant) {
      program->offsets[i] = program->constant_bytes;
      if (buffer.last >= 0) program->constant_bytes += Aligned(buffer.bytes);
      continue;
    }
    Lifetime lifetime{buffer.bytes, std::max(0, buffer.first), std::max(0, buffer.last)};
    if (beside_next(lifetime.first - 1)) --lifetime.first;
    if (beside_next(lifetime.last)) ++lifetime.last;
    if (buffer.home == Home::kInput) lifetime.first = 0;
    if (buffer.home == Home::kOutput) lifetime.last = last_step;
    lifetimes.push_back(lifetime);
    planned.push_back(static_cast<int>(i));
  }
  std::vector<bool> is_scratch(schedule.buffers.size());
  for (const StepSpec& step : schedule.steps) {
    if (step.scratch != StepSpec::kAbsent) is_scratch[step.scratch] = true;
  }
  const MemoryPlan arena = PlanMemory(lifetimes);
  for (size_t i = 0; i < planned.size(); ++i) {
    const int id = planned[i];
    program->offsets[id] = arena.offsets[i];
    program->arena.push_back({arena.offsets[i], lifetimes[i].bytes, lifetimes[i].first, lifetimes[i].last,
                              schedule.buffers[id].first, is_scratch[id]});
  }
  program->arena_bytes = arena.bytes;
}

absl::StatusOr<std::shared_ptr<const Program>> Compile(const ir::Graph& graph, const kernels::KernelRegistry& kernels,
                                                       const Executor& executor, int threads,
                                                       const ExecutableOptions& options) {
  auto program = std::make_shared<Program>();
  program->threads = threads;
  ASSIGN_OR_RETURN(program->schedule, MakeSchedule(graph, kernels, executor,
                                                   {options.isa, threads, options.max_memory_bytes, options.weights}));
  PlanBuffers(executor.on_host(), program.get());
  const int64_t weights = program->schedule.weight_bytes, wanted = program->arena_bytes + weights;
  if (options.max_memory_bytes > 0 && wanted > options.max_memory_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "graph @", graph.name(), " takes ", wanted, " bytes", executor.on_host() ? "" : " of device memory", " (",
        program->arena_bytes, " for activations, ", weights, " for weights), the limit is ", options.max_memory_bytes));
  }
  return program;
}

absl::Status CheckType(absl::string_view what, const absl::AlphaNum& name, const Tensor* tensor,
                       const TensorType& wanted) {
  if (tensor != nullptr && tensor->type() == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      what, name, " is ", tensor == nullptr ? "null" : ToString(tensor->type()), ", wanted ", ToString(wanted)));
}

// The kernel's; of what a device does itself with its name before it: "cuda to nhwc".
std::string VariantOf(const StepSpec& spec, const Executor& executor) {
  if (spec.kernel != nullptr) return spec.kernel->variant();
  const char* what = spec.kind == StepKind::kCopy                 ? "copy"
                     : spec.reordered.layout == Layout::kRowMajor ? "to nhwc"
                                                                  : "to row-major";
  return executor.on_host() ? what : absl::StrCat(absl::AsciiStrToLower(executor.name()), " ", what);
}

class ExecutableImpl final : public Executable {
 public:
  ExecutableImpl(std::shared_ptr<const Program> program, std::unique_ptr<Executor> executor)
      : program_(std::move(program)), schedule_(program_->schedule), executor_(std::move(executor)) {}

  absl::Status Init() {
    ASSIGN_OR_RETURN(arena_, executor_->Allocate(program_->arena_bytes, "the arena"));
    ASSIGN_OR_RETURN(constants_, executor_->Allocate(program_->constant_bytes, "constants"));
    bound_.inputs.resize(schedule_.input_types.size());
    bound_.outputs.resize(schedule_.output_types.size());
    for (size_t i = 0; i < schedule_.buffers.size(); ++i) {
      const BufferSpec& buffer = schedule_.buffers[i];
      uint8_t* const address = AddressOf(static_cast<int>(i));
      if (buffer.home == Home::kInput) bound_.inputs[buffer.index] = {address, buffer.bytes};
      if (buffer.home == Home::kOutput) bound_.outputs[buffer.index] = {address, buffer.bytes};
      if (buffer.home != Home::kConstant || executor_->on_host() || buffer.last < 0) continue;
      RETURN_IF_ERROR(executor_->Upload(address, buffer.constant->raw_data(), buffer.bytes));
    }
    bound_.steps.reserve(schedule_.steps.size());
    for (const StepSpec& spec : schedule_.steps) Bind(spec);
    return executor_->Prepare(bound_);
  }

  const std::vector<TensorType>& input_types() const override { return schedule_.input_types; }
  const std::vector<TensorType>& output_types() const override { return schedule_.output_types; }
  int64_t arena_bytes() const override { return program_->arena_bytes; }
  const std::vector<ArenaBlock>& arena() const override { return program_->arena; }
  int64_t weight_bytes() const override { return schedule_.weight_bytes; }
  std::optional<double> device_seconds() const override { return executor_->device_seconds(); }
  void EnableProfile(bool on) override { profiling_ = on; }
  const std::vector<StepProfile>& profile() const override { return profile_; }
  void ResetProfile() override {
    for (StepProfile& step : profile_) step.seconds.clear();
  }

  absl::Status Run(absl::Span<const Tensor* const> inputs, absl::Span<Tensor* const> outputs) override {
    RETURN_IF_ERROR(BindExternals(inputs, outputs));
    if (!profiling_) return executor_->Run(bound_, inputs, outputs, nullptr);
    seconds_.resize(profile_.size());
    RETURN_IF_ERROR(executor_->Run(bound_, inputs, outputs, &seconds_));
    for (size_t i = 0; i < profile_.size(); ++i) profile_[i].seconds.push_back(seconds_[i]);
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<StepSpan>> RunRecorded(absl::Span<const Tensor* const> inputs,
                                                    absl::Span<Tensor* const> outputs) override {
    RETURN_IF_ERROR(BindExternals(inputs, outputs));
    return executor_->RunRecorded(bound_, inputs, outputs);
  }

 private:
  // A step's buffer that is the caller's tensor, filled in by each run.
  template <typename B>
  struct External {
    B* buffer;
    int index;
  };

  absl::Status BindExternals(absl::Span<const Tensor* const> inputs, absl::Span<Tensor* const> outputs) {
    RETURN_IF_ERROR(Check(inputs, outputs));
    for (const auto& e : inputs_from_inputs_) e.buffer->data = inputs[e.index]->raw_data();
    for (const auto& e : inputs_from_outputs_) e.buffer->data = outputs[e.index]->raw_data();
    for (const auto& e : outputs_to_outputs_) e.buffer->data = outputs[e.index]->raw_data();
    return absl::OkStatus();
  }

  // Null where the caller has it.
  uint8_t* AddressOf(int id) const {
    const BufferSpec& buffer = schedule_.buffers[id];
    if (buffer.home != Home::kArena && executor_->on_host()) return nullptr;
    return (buffer.home == Home::kConstant ? constants_ : arena_) + program_->offsets[id];
  }

  void Bind(const StepSpec& spec) {
    const bool on_host = executor_->on_host();
    StepProfile profile;
    BoundStep& step = bound_.steps.emplace_back();
    step.inputs.resize(spec.inputs.size());
    step.outputs.resize(spec.outputs.size());
    for (size_t i = 0; i < spec.inputs.size(); ++i) {
      if (spec.inputs[i] == StepSpec::kAbsent) continue;
      const BufferSpec& from = schedule_.buffers[spec.inputs[i]];
      const bool in_place = on_host && from.home == Home::kConstant;
      step.inputs[i] = {in_place ? from.constant->raw_data() : AddressOf(spec.inputs[i]), from.bytes};
      if (on_host && from.home == Home::kInput) inputs_from_inputs_.push_back({&step.inputs[i], from.index});
      if (on_host && from.home == Home::kOutput) inputs_from_outputs_.push_back({&step.inputs[i], from.index});
      profile.bytes += from.bytes;
      if (from.first >= 0) profile.reads.push_back(from.first);
    }
    std::sort(profile.reads.begin(), profile.reads.end());
    profile.reads.erase(std::unique(profile.reads.begin(), profile.reads.end()), profile.reads.end());
    for (size_t i = 0; i < spec.outputs.size(); ++i) {
      const BufferSpec& to = schedule_.buffers[spec.outputs[i]];
      step.outputs[i] = {AddressOf(spec.outputs[i]), to.bytes};
      if (on_host && to.home == Home::kOutput) outputs_to_outputs_.push_back({&step.outputs[i], to.index});
      profile.bytes += to.bytes;
    }
    if (spec.scratch != StepSpec::kAbsent) {
      step.scratch = {AddressOf(spec.scratch), schedule_.buffers[spec.scratch].bytes};
    }
    step.spec = &spec;
    profile.node = spec.node;
    profile.op = spec.op;
    profile.kind = spec.kind;
    profile.variant = VariantOf(spec, *executor_);
    profile.layout = spec.layout;
    profile.macs = spec.macs;
    if (spec.kernel != nullptr) profile.bytes += spec.kernel->weight_bytes();
    profile_.push_back(std::move(profile));
  }

  absl::Status Check(absl::Span<const Tensor* const> inputs, absl::Span<Tensor* const> outputs) const {
    if (inputs.size() != input_types().size() || outputs.size() != output_types().size()) {
      return absl::InvalidArgumentError(absl::StrCat(inputs.size(), " inputs and ", outputs.size(), " outputs, wanted ",
                                                     input_types().size(), " and ", output_types().size()));
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      RETURN_IF_ERROR(CheckType("input %", schedule_.input_names[i], inputs[i], input_types()[i]));
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      RETURN_IF_ERROR(CheckType("output ", i, outputs[i], output_types()[i]));
      if (std::find(inputs.begin(), inputs.end(), outputs[i]) != inputs.end() ||
          std::find(outputs.begin(), outputs.begin() + i, outputs[i]) != outputs.begin() + i) {
        return absl::InvalidArgumentError(absl::StrCat("output ", i, " is also another input or output"));
      }
    }
    return absl::OkStatus();
  }

  const std::shared_ptr<const Program> program_;
  const Schedule& schedule_;  // The program's.
  const std::unique_ptr<Executor> executor_;
  uint8_t *arena_ = nullptr, *constants_ = nullptr;
  BoundProgram bound_;
  std::vector<External<ConstBuffer>> inputs_from_inputs_, inputs_from_outputs_;
  std::vector<External<Buffer>> outputs_to_outputs_;
  std::vector<StepProfile> profile_;  // One per step.
  std::vector<double> seconds_;       // Of the steps, in the last run that was profiled.
  bool profiling_ = false;
};

struct Unmap {
  int64_t bytes = 0;
  void operator()(uint8_t* data) const { munmap(data, bytes); }
};

// The CPU. `pool` is null where nothing will run.
class HostExecutor final : public Executor {
 public:
  explicit HostExecutor(ThreadPool* pool) : pool_(pool) {}

  absl::string_view name() const override { return "CPU"; }
  bool on_host() const override { return true; }

  // Pages touched once so that no run pays for it; huge pages where the system gives them.
  absl::StatusOr<uint8_t*> Allocate(int64_t bytes, absl::string_view what) override {
    if (bytes == 0) return nullptr;
    void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) {
      return absl::ResourceExhaustedError(absl::StrCat("cannot allocate ", bytes, " bytes for ", what));
    }
    memory_.push_back(std::unique_ptr<uint8_t, Unmap>(static_cast<uint8_t*>(data), Unmap{bytes}));
    madvise(data, bytes, MADV_HUGEPAGE);  // Advice: any outcome will do.
    std::memset(data, 0, bytes);
    return memory_.back().get();
  }
  absl::Status Upload(void* to, const void* from, int64_t bytes) override { return Copy(from, to, bytes); }

  absl::Status Run(const BoundProgram& program, absl::Span<const Tensor* const>, absl::Span<Tensor* const>,
                   std::vector<double>* seconds) override {
    using Clock = std::chrono::steady_clock;
    for (size_t i = 0; i < program.steps.size(); ++i) {
      const auto start = seconds == nullptr ? Clock::time_point() : Clock::now();
      RETURN_IF_ERROR(RunStep(program.steps[i], pool_));
      if (seconds != nullptr) (*seconds)[i] = std::chrono::duration<double>(Clock::now() - start).count();
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<StepSpan>> RunRecorded(const BoundProgram& program, absl::Span<const Tensor* const>,
                                                    absl::Span<Tensor* const>) override {
    SpanRecorder recorder(pool_);
    for (size_t i = 0; i < program.steps.size(); ++i) {
      recorder.BeginStep(static_cast<int>(i));
      RETURN_IF_ERROR(RunStep(program.steps[i], &recorder));
      recorder.EndStep();
    }
    return recorder.Spans();
  }

 private:
  absl::Status Copy(const void* from, void* to, int64_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return absl::OkStatus();
  }
  absl::Status Reorder(const TensorType& type, const void* from, void* to, kernels::Parallel& parallel) override {
    runtime::Reorder(type, from, to, parallel);
    return absl::OkStatus();
  }

  ThreadPool* const pool_;
  std::vector<std::unique_ptr<uint8_t, Unmap>> memory_;
};

absl::StatusOr<std::unique_ptr<Executable>> Bound(std::shared_ptr<const Program> program,
                                                  std::unique_ptr<Executor> executor) {
  auto executable = std::make_unique<ExecutableImpl>(std::move(program), std::move(executor));
  RETURN_IF_ERROR(executable->Init());
  return executable;
}

}  // namespace

absl::Status Executor::RunStep(const BoundStep& step, kernels::Parallel* parallel, void* stream) {
  const StepSpec& spec = *step.spec;
  const absl::Status status =
      spec.kernel != nullptr         ? spec.kernel->Run(step.inputs, step.outputs, {parallel, step.scratch, stream})
      : spec.kind == StepKind::kCopy ? Copy(step.inputs[0].data, step.outputs[0].data, step.outputs[0].bytes)
                                     : Reorder(spec.reordered, step.inputs[0].data, step.outputs[0].data, *parallel);
  return status.ok() ? status : Annotate(status, step.name());
}

absl::StatusOr<std::vector<StepSpan>> Executor::RunRecorded(const BoundProgram& program,
                                                            absl::Span<const Tensor* const> inputs,
                                                            absl::Span<Tensor* const> outputs) {
  std::vector<double> seconds(program.steps.size());
  RETURN_IF_ERROR(Run(program, inputs, outputs, &seconds));
  std::vector<StepSpan> spans;
  double now = 0;
  for (size_t i = 0; i < seconds.size(); ++i) {
    spans.push_back({static_cast<int>(i), 0, now, now + seconds[i]});
    now += seconds[i];
  }
  return spans;
}

absl::StatusOr<std::shared_ptr<const Program>> MakeProgram(const ir::Graph& graph,
                                                           const kernels::KernelRegistry& kernels, int threads,
                                                           const ExecutableOptions& options) {
  return Compile(graph, kernels, HostExecutor(nullptr), threads, options);
}

absl::StatusOr<std::unique_ptr<Executable>> Executable::Create(std::shared_ptr<const Program> program,
                                                               ThreadPool* pool) {
  FUSELAGE_CHECK(pool != nullptr && pool->threads() <= program->threads);
  return Bound(std::move(program), std::make_unique<HostExecutor>(pool));
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
  return Bound(std::move(program), std::move(executor));
}

absl::StatusOr<std::vector<Tensor>> RunOnce(Executable& executable, absl::Span<const Tensor> inputs) {
  std::vector<const Tensor*> input_pointers;
  for (const Tensor& input : inputs) input_pointers.push_back(&input);
  std::vector<Tensor> outputs(executable.output_types().begin(), executable.output_types().end());
  std::vector<Tensor*> output_pointers;
  for (Tensor& output : outputs) output_pointers.push_back(&output);
  RETURN_IF_ERROR(executable.Run(input_pointers, output_pointers));
  return outputs;
}

}  // namespace fuselage::runtime
