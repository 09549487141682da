#include "runtime/executable.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/memory_plan.h"
#include "runtime/schedule.h"

namespace fuselage::runtime {

class Program {
 public:
  Schedule schedule;
  int threads = 1;
  std::vector<int> planned;  // The buffers that have a place in `plan`, in its order.
  MemoryPlan plan;
};

namespace {

using kernels::Buffer;
using kernels::ConstBuffer;

struct Unmap {
  int64_t bytes = 0;
  void operator()(uint8_t* data) const { munmap(data, bytes); }
};

// Zeroed pages, touched once so that no run pays for it; huge pages where the system gives them.
class Arena {
 public:
  static absl::StatusOr<Arena> Create(int64_t bytes) {
    Arena arena;
    if (bytes == 0) return arena;
    void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) {
      return absl::ResourceExhaustedError(absl::StrCat("cannot allocate ", bytes, " bytes for the arena"));
    }
    arena.data_ = {static_cast<uint8_t*>(data), Unmap{bytes}};
    madvise(data, bytes, MADV_HUGEPAGE);  // Advice: any outcome will do.
    std::memset(data, 0, bytes);
    return arena;
  }
  uint8_t* data() const { return data_.get(); }

 private:
  std::unique_ptr<uint8_t, Unmap> data_;
};

// A step with its addresses. Those of the graph's inputs and outputs are filled in by each run.
struct BoundStep {
  struct External {
    int operand;
    int index;
  };

  const Step* step = nullptr;
  std::vector<ConstBuffer> inputs;
  std::vector<Buffer> outputs;
  Buffer scratch;
  std::vector<External> inputs_from_inputs, inputs_from_outputs, outputs_to_outputs;
};

absl::Status CheckType(absl::string_view kind, absl::string_view name, const Tensor* tensor, const TensorType& wanted) {
  if (tensor == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(kind, " ", name, " is null, wanted ", ToString(wanted)));
  }
  if (tensor->type() != wanted) {
    return absl::InvalidArgumentError(
        absl::StrCat(kind, " ", name, " is ", ToString(tensor->type()), ", wanted ", ToString(wanted)));
  }
  return absl::OkStatus();
}

class ExecutableImpl final : public Executable {
 public:
  ExecutableImpl(std::shared_ptr<const Program> program, Arena arena, ThreadPool* pool)
      : pool_(pool), program_(std::move(program)), schedule_(program_->schedule), arena_(std::move(arena)) {
    std::vector<uint8_t*> addresses(schedule_.buffers.size(), nullptr);
    for (size_t i = 0; i < program_->planned.size(); ++i) {
      addresses[program_->planned[i]] = arena_.data() + program_->plan.offsets[i];
    }
    for (const StepSpec& spec : schedule_.steps) Bind(spec, addresses);
  }

  const std::vector<TensorType>& input_types() const override { return schedule_.input_types; }
  const std::vector<TensorType>& output_types() const override { return schedule_.output_types; }
  int64_t arena_bytes() const override { return program_->plan.bytes; }
  int64_t weight_bytes() const override { return schedule_.weight_bytes; }
  void EnableProfile(bool on) override { profiling_ = on; }
  const std::vector<StepProfile>& profile() const override { return profile_; }
  void ResetProfile() override {
    for (StepProfile& step : profile_) step.seconds.clear();
  }

  absl::Status Run(absl::Span<const Tensor* const> inputs, absl::Span<Tensor* const> outputs) override {
    RETURN_IF_ERROR(Check(inputs, outputs));
    for (size_t i = 0; i < steps_.size(); ++i) {
      BoundStep& step = steps_[i];
      for (const auto& e : step.inputs_from_inputs) step.inputs[e.operand].data = inputs[e.index]->raw_data();
      for (const auto& e : step.inputs_from_outputs) step.inputs[e.operand].data = outputs[e.index]->raw_data();
      for (const auto& e : step.outputs_to_outputs) step.outputs[e.operand].data = outputs[e.index]->raw_data();
      const auto start = profiling_ ? Clock::now() : Clock::time_point();
      absl::Status status = step.step->Run(step.inputs, step.outputs, {pool_, step.scratch});
      if (!status.ok()) return Annotate(status, absl::StrCat("%", profile_[i].node, " (", profile_[i].op, ")"));
      if (profiling_) {
        profile_[i].seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
      }
    }
    return absl::OkStatus();
  }

 private:
  using Clock = std::chrono::steady_clock;
  using Home = BufferSpec::Home;

  void Bind(const StepSpec& spec, const std::vector<uint8_t*>& addresses) {
    BoundStep step;
    StepProfile profile;
    for (int id : spec.inputs) {
      ConstBuffer buffer;
      if (id != StepSpec::kAbsent) {
        const BufferSpec& from = schedule_.buffers[id];
        const int operand = static_cast<int>(step.inputs.size());
        buffer = {from.home == Home::kConstant ? from.constant->raw_data() : addresses[id], from.bytes};
        if (from.home == Home::kInput) step.inputs_from_inputs.push_back({operand, from.index});
        if (from.home == Home::kOutput) step.inputs_from_outputs.push_back({operand, from.index});
      }
      profile.bytes += buffer.bytes;
      step.inputs.push_back(buffer);
    }
    for (int id : spec.outputs) {
      const BufferSpec& to = schedule_.buffers[id];
      if (to.home == Home::kOutput) {
        step.outputs_to_outputs.push_back({static_cast<int>(step.outputs.size()), to.index});
      }
      profile.bytes += to.bytes;
      step.outputs.push_back({addresses[id], to.bytes});
    }
    if (spec.scratch != StepSpec::kAbsent) {
      step.scratch = {addresses[spec.scratch], schedule_.buffers[spec.scratch].bytes};
    }
    profile.node = spec.node;
    profile.op = spec.op;
    profile.variant = spec.step->variant();
    profile.layout = spec.layout;
    profile.macs = spec.macs;
    profile.bytes += spec.step->weight_bytes();
    profile_.push_back(std::move(profile));
    step.step = spec.step.get();
    steps_.push_back(std::move(step));
  }

  absl::Status Check(absl::Span<const Tensor* const> inputs, absl::Span<Tensor* const> outputs) const {
    if (inputs.size() != input_types().size() || outputs.size() != output_types().size()) {
      return absl::InvalidArgumentError(absl::StrCat(inputs.size(), " inputs and ", outputs.size(), " outputs, wanted ",
                                                     input_types().size(), " and ", output_types().size()));
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] != nullptr && inputs[i]->type() == input_types()[i]) continue;
      return CheckType("input", absl::StrCat("%", schedule_.input_names[i]), inputs[i], input_types()[i]);
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i] == nullptr || outputs[i]->type() != output_types()[i]) {
        return CheckType("output", absl::StrCat(i), outputs[i], output_types()[i]);
      }
      if (std::find(inputs.begin(), inputs.end(), outputs[i]) != inputs.end() ||
          std::find(outputs.begin(), outputs.begin() + i, outputs[i]) != outputs.begin() + i) {
        return absl::InvalidArgumentError(absl::StrCat("output ", i, " is also another input or output"));
      }
    }
    return absl::OkStatus();
  }

  ThreadPool* const pool_;
  const std::shared_ptr<const Program> program_;
  const Schedule& schedule_;  // The program's.
  const Arena arena_;
  std::vector<BoundStep> steps_;
  std::vector<StepProfile> profile_;  // One per step.
  bool profiling_ = false;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const Program>> MakeProgram(const ir::Graph& graph,
                                                           const kernels::KernelRegistry& kernels, int threads,
                                                           const ExecutableOptions& options) {
  auto program = std::make_shared<Program>();
  program->threads = threads;
  Schedule& schedule = program->schedule;
  ASSIGN_OR_RETURN(schedule, MakeSchedule(graph, kernels, {options.isa, threads, options.max_memory_bytes}));
  std::vector<Lifetime> lifetimes;
  for (size_t i = 0; i < schedule.buffers.size(); ++i) {
    const BufferSpec& buffer = schedule.buffers[i];
    if (buffer.home != BufferSpec::Home::kArena) continue;
    lifetimes.push_back({buffer.bytes, buffer.first, buffer.last});
    program->planned.push_back(static_cast<int>(i));
  }
  program->plan = PlanMemory(lifetimes);
  const int64_t activations = program->plan.bytes, wanted = activations + schedule.weight_bytes;
  if (options.max_memory_bytes > 0 && wanted > options.max_memory_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("graph @", graph.name(), " takes ", wanted, " bytes (",
                                                     activations, " for activations, ", schedule.weight_bytes,
                                                     " for weights), the limit is ", options.max_memory_bytes));
  }
  return program;
}

absl::StatusOr<std::unique_ptr<Executable>> Executable::Create(std::shared_ptr<const Program> program,
                                                               ThreadPool* pool) {
  FUSELAGE_CHECK(pool != nullptr && pool->threads() <= program->threads);
  ASSIGN_OR_RETURN(Arena arena, Arena::Create(program->plan.bytes));
  return std::make_unique<ExecutableImpl>(std::move(program), std::move(arena), pool);
}

absl::StatusOr<std::unique_ptr<Executable>> Executable::Create(const ir::Graph& graph,
                                                               const kernels::KernelRegistry& kernels, ThreadPool* pool,
                                                               const ExecutableOptions& options) {
  FUSELAGE_CHECK(pool != nullptr);
  ASSIGN_OR_RETURN(std::shared_ptr<const Program> program, MakeProgram(graph, kernels, pool->threads(), options));
  return Create(std::move(program), pool);
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
