#include "runtime/executable.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "runtime/host_executor.h"
#include "runtime/program.h"
#include "runtime/schedule.h"

namespace fuselage::runtime {
namespace {

using kernels::Buffer;
using kernels::ConstBuffer;
using Home = BufferSpec::Home;

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
    constants_.resize(schedule_.buffers.size());
    bound_.inputs.resize(schedule_.input_types.size());
    bound_.outputs.resize(schedule_.output_types.size());
    for (size_t i = 0; i < schedule_.buffers.size(); ++i) {
      const BufferSpec& buffer = schedule_.buffers[i];
      uint8_t* const address = AddressOf(static_cast<int>(i));
      if (buffer.home == Home::kInput) bound_.inputs[buffer.index] = {address, buffer.bytes};
      if (buffer.home == Home::kOutput) bound_.outputs[buffer.index] = {address, buffer.bytes};
      if (buffer.home != Home::kConstant || buffer.last < 0) continue;
      ASSIGN_OR_RETURN(constants_[i], executor_->Place(*buffer.constant));
    }
    BindSteps();
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
    for (double& seconds : seconds_) seconds = 0;
    RETURN_IF_ERROR(executor_->Run(bound_, inputs, outputs, &seconds_));
    for (size_t i = 0; i < profile_.size(); ++i) profile_[i].seconds.push_back(seconds_[i]);
    return absl::OkStatus();
  }

  absl::Status RunAt(absl::Span<const void* const> inputs, absl::Span<void* const> outputs) override {
    FUSELAGE_CHECK(executor_->on_host() && inputs.size() == input_types().size() &&
                   outputs.size() == output_types().size());
    for (const auto& e : inputs_from_inputs_) e.PointInto(inputs[e.index]);
    for (const auto& e : inputs_from_outputs_) e.PointInto(outputs[e.index]);
    for (const auto& e : outputs_to_outputs_) e.PointInto(outputs[e.index]);
    return executor_->Run(bound_, {}, {}, nullptr);
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
    int64_t offset;

    template <typename Data>
    void PointInto(Data* tensor) const {
      using Byte = std::conditional_t<std::is_const_v<Data>, const uint8_t, uint8_t>;
      buffer->data = static_cast<Byte*>(tensor) + offset;
    }
  };

  absl::Status BindExternals(absl::Span<const Tensor* const> inputs, absl::Span<Tensor* const> outputs) {
    RETURN_IF_ERROR(Check(inputs, outputs));
    for (const auto& e : inputs_from_inputs_) e.PointInto(inputs[e.index]->raw_data());
    for (const auto& e : inputs_from_outputs_) e.PointInto(outputs[e.index]->raw_data());
    for (const auto& e : outputs_to_outputs_) e.PointInto(outputs[e.index]->raw_data());
    return absl::OkStatus();
  }

  // Null where the caller has it, and of a constant.
  uint8_t* AddressOf(int id) const {
    const Home home = schedule_.buffers[id].home;
    const bool elsewhere = home == Home::kConstant || (home != Home::kArena && executor_->on_host());
    return elsewhere ? nullptr : arena_ + program_->offsets[id];
  }

  void AddWriters(const BufferSpec& buffer, std::vector<int>* steps) const {
    const bool is_new = std::find(steps->begin(), steps->end(), buffer.first) == steps->end();
    if (buffer.first >= 0 && is_new) steps->push_back(buffer.first);
    for (const int part : buffer.parts) AddWriters(schedule_.buffers[part], steps);
  }

  // All turns of a band, one behind the other.
  void BindSteps() {
    size_t count = schedule_.steps.size();
    for (const Band& band : schedule_.bands) count += (band.turns - 1) * (band.last + 1 - band.first);
    bound_.steps = std::vector<BoundStep>(count);
    profile_ = std::vector<StepProfile>(schedule_.steps.size());
    seconds_ = std::vector<double>(schedule_.steps.size());
    BoundStep* bound = bound_.steps.data();
    auto band = schedule_.bands.begin();
    for (int first = 0, last; first < static_cast<int>(schedule_.steps.size()); first = last + 1) {
      const bool in_band = band != schedule_.bands.end() && band->first == first;
      last = in_band ? band->last : first;
      const int64_t turns = in_band ? (band++)->turns : 1;
      for (int64_t turn = 0; turn < turns; ++turn) {
        for (int i = first; i <= last; ++i) BindStep(i, turn, *bound++);
      }
      for (int i = first; i <= last; ++i) FillProfile(schedule_.steps[i], turns, profile_[i]);
    }
  }

  void BindStep(int index, int64_t turn, BoundStep& step) {
    const StepSpec& spec = schedule_.steps[index];
    const bool on_host = executor_->on_host();
    step.spec = &spec;
    step.index = index;
    step.inputs.resize(spec.inputs.size());
    step.outputs.resize(spec.outputs.size());
    const auto offset_of = [&](size_t operand) { return turn == 0 ? 0 : turn * spec.strides[operand]; };
    for (size_t i = 0; i < spec.inputs.size(); ++i) {
      if (spec.inputs[i] == StepSpec::kAbsent) continue;
      const BufferSpec& from = schedule_.buffers[spec.inputs[i]];
      const int64_t offset = offset_of(i);
      const auto* whole = from.home == Home::kConstant ? constants_[spec.inputs[i]] : AddressOf(spec.inputs[i]);
      step.inputs[i] = {whole + offset, from.bytes - offset};
      if (on_host && from.home == Home::kInput) inputs_from_inputs_.push_back({&step.inputs[i], from.index, offset});
      if (on_host && from.home == Home::kOutput) inputs_from_outputs_.push_back({&step.inputs[i], from.index, offset});
    }
    for (size_t i = 0; i < spec.outputs.size(); ++i) {
      const BufferSpec& to = schedule_.buffers[spec.outputs[i]];
      const int64_t offset = offset_of(spec.inputs.size() + i);
      step.outputs[i] = {AddressOf(spec.outputs[i]) + offset, to.bytes - offset};
      if (on_host && to.home == Home::kOutput) outputs_to_outputs_.push_back({&step.outputs[i], to.index, offset});
    }
    if (spec.scratch != StepSpec::kAbsent) {
      step.scratch = {AddressOf(spec.scratch), schedule_.buffers[spec.scratch].bytes};
    }
  }

  // A kernel's operands are those of a turn.
  void FillProfile(const StepSpec& spec, int64_t turns, StepProfile& profile) {
    profile.node = spec.node;
    profile.op = spec.op;
    profile.kind = spec.kind;
    profile.variant = VariantOf(spec, *executor_);
    if (turns > 1) absl::StrAppend(&profile.variant, ", ", turns, " turns");
    profile.layout = spec.layout;
    profile.macs = spec.macs;
    for (size_t i = 0; i < spec.inputs.size(); ++i) {
      if (spec.inputs[i] == StepSpec::kAbsent) continue;
      const BufferSpec& from = schedule_.buffers[spec.inputs[i]];
      profile.bytes += turns * (spec.kernel != nullptr ? spec.kernel->inputs()[i]->byte_size() : from.bytes);
      AddWriters(from, &profile.reads);
    }
    for (size_t i = 0; i < spec.outputs.size(); ++i) {
      const int64_t bytes =
          spec.kernel != nullptr ? spec.kernel->outputs()[i].byte_size() : schedule_.buffers[spec.outputs[i]].bytes;
      profile.bytes += turns * bytes;
    }
    if (spec.kernel != nullptr) profile.bytes += spec.kernel->weight_bytes();
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
  uint8_t* arena_ = nullptr;
  std::vector<const uint8_t*> constants_;  // By buffer.
  BoundProgram bound_;
  std::vector<External<ConstBuffer>> inputs_from_inputs_, inputs_from_outputs_;
  std::vector<External<Buffer>> outputs_to_outputs_;
  std::vector<StepProfile> profile_;  // One per step.
  std::vector<double> seconds_;       // Of the steps, in the last run that was profiled.
  bool profiling_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Executable>> Bind(std::shared_ptr<const Program> program,
                                                 std::unique_ptr<Executor> executor) {
  auto executable = std::make_unique<ExecutableImpl>(std::move(program), std::move(executor));
  RETURN_IF_ERROR(executable->Init());
  return executable;
}

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

absl::StatusOr<std::unique_ptr<Executable>> Executable::Create(std::shared_ptr<const Program> program,
                                                               ThreadPool* pool) {
  FUSELAGE_CHECK(pool != nullptr && pool->threads() <= program->threads);
  return Bind(std::move(program), std::make_unique<HostExecutor>(pool));
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
