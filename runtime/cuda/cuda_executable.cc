#include "runtime/cuda/cuda_executable.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/base/status.h"
#include "runtime/memory_plan.h"
#include "runtime/schedule.h"

namespace fuselage::runtime::cuda {
namespace {

using kernels::Buffer;
using kernels::ConstBuffer;
using kernels::RunContext;
using Home = BufferSpec::Home;

// CopyStep on the device.
class DeviceCopy final : public Step {
 public:
  explicit DeviceCopy(Device* device) : device_(device) {}

  absl::Status Run(absl::Span<const ConstBuffer> inputs, absl::Span<const Buffer> outputs,
                   const RunContext& context) const override {
    return device_->Copy(outputs[0].data, inputs[0].data, outputs[0].bytes, Direction::kDeviceToDevice, context.stream);
  }
  std::string variant() const override { return "cuda copy"; }

 private:
  Device* const device_;
};

// ReorderStep on the device.
class DeviceReorder final : public Step {
 public:
  DeviceReorder(Device* device, TensorType type) : device_(device), type_(std::move(type)) {}

  absl::Status Run(absl::Span<const ConstBuffer> inputs, absl::Span<const Buffer> outputs,
                   const RunContext& context) const override {
    const int64_t channels = type_.shape[1], pixels = type_.shape[2] * type_.shape[3];
    const bool to_nhwc = type_.layout == Layout::kRowMajor;
    return device_->Transpose(type_.shape[0], to_nhwc ? channels : pixels, to_nhwc ? pixels : channels,
                              ByteSize(type_.dtype), inputs[0].data, outputs[0].data, context.stream);
  }
  std::string variant() const override {
    return type_.layout == Layout::kRowMajor ? "cuda to nhwc" : "cuda to row-major";
  }

 private:
  Device* const device_;
  const TensorType type_;
};

// Replaces the steps that work on host memory.
absl::Status MoveToDevice(Device* device, Schedule* schedule) {
  std::vector<std::string> missing;
  for (StepSpec& spec : schedule->steps) {
    if (const TensorType* type = spec.step->reordered_type()) {
      spec.step = std::make_unique<DeviceReorder>(device, *type);
    } else if (spec.node.empty() && spec.op == "copy") {
      spec.step = std::make_unique<DeviceCopy>(device);
    } else if (spec.step->variant() == "reference") {
      missing.push_back(absl::StrCat("%", spec.node, " (", spec.op, ")"));
    }
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat(missing.size(), " nodes have no CUDA kernel:\n  ", absl::StrJoin(missing, "\n  ")));
}

int64_t Aligned(int64_t bytes) { return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment; }

// Where every buffer lies: offsets in the arena, or for constants in a block of their own.
struct BufferPlan {
  std::vector<int64_t> offsets;
  int64_t arena_bytes = 0, constant_bytes = 0;
};

// Which steps run beside the next one: pairs of kernels that multiply, and do not need each other. So a convolution of
// the shortcut fills the multiprocessors that the one beside it leaves idle.
std::vector<bool> BesideNext(const Schedule& schedule) {
  const std::vector<StepSpec>& steps = schedule.steps;
  std::vector<bool> beside(steps.size(), false);
  for (size_t i = 0; i + 1 < steps.size(); ++i) {
    const StepSpec &step = steps[i], &next = steps[i + 1];
    const bool needed = std::any_of(next.inputs.begin(), next.inputs.end(), [&](int input) {
      return std::find(step.outputs.begin(), step.outputs.end(), input) != step.outputs.end();
    });
    if (needed || step.macs == 0 || next.macs == 0) continue;
    beside[i] = true;
    ++i;
  }
  return beside;
}

// Inputs arrive before the first step, outputs leave after the last. What one of two steps that run beside each other
// uses, lives during both.
BufferPlan PlanBuffers(const Schedule& schedule, const std::vector<bool>& beside_next) {
  const int last_step = std::max(0, static_cast<int>(schedule.steps.size()) - 1);
  BufferPlan plan;
  plan.offsets.resize(schedule.buffers.size());
  std::vector<Lifetime> lifetimes;
  std::vector<int> planned;  // The buffer of each lifetime.
  for (size_t i = 0; i < schedule.buffers.size(); ++i) {
    const BufferSpec& buffer = schedule.buffers[i];
    if (buffer.home == Home::kConstant) {
      plan.offsets[i] = plan.constant_bytes;
      if (buffer.last >= 0) plan.constant_bytes += Aligned(buffer.bytes);
      continue;
    }
    Lifetime lifetime{buffer.bytes, std::max(0, buffer.first), std::max(0, buffer.last)};
    if (lifetime.first > 0 && beside_next[lifetime.first - 1]) --lifetime.first;
    if (!beside_next.empty() && beside_next[lifetime.last]) ++lifetime.last;
    if (buffer.home == Home::kInput) lifetime.first = 0;
    if (buffer.home == Home::kOutput) lifetime.last = last_step;
    lifetimes.push_back(lifetime);
    planned.push_back(static_cast<int>(i));
  }
  const MemoryPlan arena = PlanMemory(lifetimes);
  for (size_t i = 0; i < planned.size(); ++i) plan.offsets[planned[i]] = arena.offsets[i];
  plan.arena_bytes = arena.bytes;
  return plan;
}

struct BoundStep {
  std::unique_ptr<Step> step;
  std::vector<ConstBuffer> inputs;
  std::vector<Buffer> outputs;
  Buffer scratch;
};

// A graph's input or output: its place in the arena and in pinned host memory.
struct HostBuffer {
  void* device = nullptr;
  uint8_t* host = nullptr;
  int64_t bytes = 0;
};

class CudaExecutableImpl final : public CudaExecutable {
 public:
  CudaExecutableImpl(Device* device, Schedule schedule) : device_(device), schedule_(std::move(schedule)) {}

  ~CudaExecutableImpl() override {
    // What an error left on the stream may still use the memory.
    if (stream_ != nullptr) device_->Synchronize(stream_.get()).IgnoreError();
  }

  absl::Status Init(const CudaExecutableOptions& options, absl::string_view name) {
    beside_next_ = BesideNext(schedule_);
    const BufferPlan plan = PlanBuffers(schedule_, beside_next_);
    arena_bytes_ = plan.arena_bytes;
    const int64_t wanted = arena_bytes_ + schedule_.weight_bytes;
    if (options.max_memory_bytes > 0 && wanted > options.max_memory_bytes) {
      return absl::ResourceExhaustedError(absl::StrCat("graph @", name, " takes ", wanted, " bytes of device memory (",
                                                       arena_bytes_, " for activations, ", schedule_.weight_bytes,
                                                       " for weights), the limit is ", options.max_memory_bytes));
    }
    ASSIGN_OR_RETURN(stream_, device_->NewStream());
    ASSIGN_OR_RETURN(beside_, device_->NewStream());
    ASSIGN_OR_RETURN(fork_, device_->NewEvent());
    ASSIGN_OR_RETURN(join_, device_->NewEvent());
    ASSIGN_OR_RETURN(start_, device_->NewEvent());
    ASSIGN_OR_RETURN(end_, device_->NewEvent());
    ASSIGN_OR_RETURN(arena_, device_->Allocate(arena_bytes_, "the arena"));
    ASSIGN_OR_RETURN(constants_, device_->Allocate(plan.constant_bytes, "constants"));
    RETURN_IF_ERROR(device_->Fill(arena_.get(), 0, arena_bytes_, stream_.get()));
    RETURN_IF_ERROR(UploadConstants(plan));
    RETURN_IF_ERROR(MakeHostBuffers(plan));
    for (StepSpec& spec : schedule_.steps) Bind(spec, plan);
    // Kernels may have uploaded their weights on another stream.
    RETURN_IF_ERROR(device_->Synchronize());
    for (size_t i = 0; i < steps_.size(); ++i) {
      RETURN_IF_ERROR(LaunchStep(i, stream_.get()));
      RETURN_IF_ERROR(Annotate(device_->Synchronize(stream_.get()), StepName(i)));
    }
    ASSIGN_OR_RETURN(graph_, device_->Capture(stream_.get(), [&] { return LaunchSteps(); }));
    return absl::OkStatus();
  }

  const std::vector<TensorType>& input_types() const override { return schedule_.input_types; }
  const std::vector<TensorType>& output_types() const override { return schedule_.output_types; }
  int64_t arena_bytes() const override { return arena_bytes_; }
  int64_t weight_bytes() const override { return schedule_.weight_bytes; }
  double device_seconds() const override { return device_seconds_; }
  void EnableProfile(bool on) override { profiling_ = on; }
  const std::vector<StepProfile>& profile() const override { return profile_; }
  void ResetProfile() override {
    for (StepProfile& step : profile_) step.seconds.clear();
  }

  absl::Status Run(absl::Span<const Tensor* const> inputs, absl::Span<Tensor* const> outputs) override {
    RETURN_IF_ERROR(Check(inputs, outputs));
    Stream stream = stream_.get();
    for (size_t i = 0; i < inputs.size(); ++i) {
      const HostBuffer& input = inputs_[i];
      if (input.bytes > 0) std::memcpy(input.host, inputs[i]->raw_data(), input.bytes);
      RETURN_IF_ERROR(device_->Copy(input.device, input.host, input.bytes, Direction::kHostToDevice, stream));
    }
    if (profiling_) {
      RETURN_IF_ERROR(LaunchProfiled());
    } else {
      RETURN_IF_ERROR(device_->Record(start_.get(), stream));
      RETURN_IF_ERROR(device_->Launch(graph_.get(), stream));
      RETURN_IF_ERROR(device_->Record(end_.get(), stream));
    }
    for (const HostBuffer& output : outputs_) {
      RETURN_IF_ERROR(device_->Copy(output.host, output.device, output.bytes, Direction::kDeviceToHost, stream));
    }
    RETURN_IF_ERROR(device_->Synchronize(stream));
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs_[i].bytes > 0) std::memcpy(outputs[i]->raw_data(), outputs_[i].host, outputs_[i].bytes);
    }
    device_seconds_ = 0;
    if (profiling_) return ReadProfile();
    ASSIGN_OR_RETURN(device_seconds_, device_->SecondsBetween(start_.get(), end_.get()));
    return absl::OkStatus();
  }

 private:
  uint8_t* InArena(int64_t offset) const { return static_cast<uint8_t*>(arena_.get()) + offset; }

  uint8_t* AddressOf(int id, const BufferPlan& plan) const {
    if (schedule_.buffers[id].home != Home::kConstant) return InArena(plan.offsets[id]);
    return static_cast<uint8_t*>(constants_.get()) + plan.offsets[id];
  }

  absl::Status UploadConstants(const BufferPlan& plan) {
    for (size_t i = 0; i < schedule_.buffers.size(); ++i) {
      const BufferSpec& buffer = schedule_.buffers[i];
      if (buffer.home != Home::kConstant || buffer.last < 0) continue;
      RETURN_IF_ERROR(device_->Copy(AddressOf(static_cast<int>(i), plan), buffer.constant->raw_data(), buffer.bytes,
                                    Direction::kHostToDevice, stream_.get()));
    }
    return absl::OkStatus();
  }

  absl::Status MakeHostBuffers(const BufferPlan& plan) {
    inputs_.resize(schedule_.input_types.size());
    outputs_.resize(schedule_.output_types.size());
    int64_t bytes = 0;
    const auto for_each = [&](const auto& visit) {
      for (size_t i = 0; i < schedule_.buffers.size(); ++i) {
        const BufferSpec& buffer = schedule_.buffers[i];
        if (buffer.home == Home::kInput) visit(inputs_[buffer.index], static_cast<int>(i));
        if (buffer.home == Home::kOutput) visit(outputs_[buffer.index], static_cast<int>(i));
      }
    };
    for_each([&](HostBuffer&, int id) { bytes += Aligned(schedule_.buffers[id].bytes); });
    ASSIGN_OR_RETURN(host_, device_->AllocateHost(bytes, "inputs and outputs"));
    uint8_t* next = static_cast<uint8_t*>(host_.get());
    for_each([&](HostBuffer& buffer, int id) {
      buffer = {AddressOf(id, plan), next, schedule_.buffers[id].bytes};
      next += Aligned(buffer.bytes);
    });
    return absl::OkStatus();
  }

  void Bind(StepSpec& spec, const BufferPlan& plan) {
    BoundStep step;
    StepProfile profile;
    for (int id : spec.inputs) {
      ConstBuffer buffer;
      if (id != StepSpec::kAbsent) buffer = {AddressOf(id, plan), schedule_.buffers[id].bytes};
      profile.bytes += buffer.bytes;
      step.inputs.push_back(buffer);
    }
    for (int id : spec.outputs) {
      step.outputs.push_back({AddressOf(id, plan), schedule_.buffers[id].bytes});
      profile.bytes += schedule_.buffers[id].bytes;
    }
    if (spec.scratch != StepSpec::kAbsent) {
      step.scratch = {AddressOf(spec.scratch, plan), schedule_.buffers[spec.scratch].bytes};
    }
    profile.node = spec.node;
    profile.op = spec.op;
    profile.variant = spec.step->variant();
    profile.layout = spec.layout;
    profile.macs = spec.macs;
    profile.bytes += spec.step->weight_bytes();
    profile_.push_back(std::move(profile));
    step.step = std::move(spec.step);
    steps_.push_back(std::move(step));
  }

  std::string StepName(size_t i) const { return absl::StrCat("%", profile_[i].node, " (", profile_[i].op, ")"); }

  absl::Status LaunchStep(size_t i, Stream stream) {
    const BoundStep& step = steps_[i];
    absl::Status status = step.step->Run(step.inputs, step.outputs, {&serial_, step.scratch, stream});
    if (status.ok()) status = device_->LaunchStatus();
    return status.ok() ? status : Annotate(status, StepName(i));
  }

  absl::Status LaunchSteps() {
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (!beside_next_[i]) {
        RETURN_IF_ERROR(LaunchStep(i, stream_.get()));
        continue;
      }
      RETURN_IF_ERROR(device_->Record(fork_.get(), stream_.get()));
      RETURN_IF_ERROR(device_->Wait(beside_.get(), fork_.get()));
      RETURN_IF_ERROR(LaunchStep(i, stream_.get()));
      RETURN_IF_ERROR(LaunchStep(++i, beside_.get()));
      RETURN_IF_ERROR(device_->Record(join_.get(), beside_.get()));
      RETURN_IF_ERROR(device_->Wait(stream_.get(), join_.get()));
    }
    return absl::OkStatus();
  }

  absl::Status LaunchStepsAndEvents() {
    RETURN_IF_ERROR(device_->RecordInGraph(events_[0].get(), stream_.get()));
    for (size_t i = 0; i < steps_.size(); ++i) {
      RETURN_IF_ERROR(LaunchStep(i, stream_.get()));
      RETURN_IF_ERROR(device_->RecordInGraph(events_[i + 1].get(), stream_.get()));
    }
    return absl::OkStatus();
  }

  absl::Status LaunchProfiled() {
    while (events_.size() <= steps_.size()) {
      ASSIGN_OR_RETURN(Handle event, device_->NewEvent());
      events_.push_back(std::move(event));
    }
    if (profiled_graph_ == nullptr) {
      ASSIGN_OR_RETURN(profiled_graph_, device_->Capture(stream_.get(), [&] { return LaunchStepsAndEvents(); }));
    }
    return device_->Launch(profiled_graph_.get(), stream_.get());
  }

  absl::Status ReadProfile() {
    for (size_t i = 0; i < steps_.size(); ++i) {
      ASSIGN_OR_RETURN(const double seconds, device_->SecondsBetween(events_[i].get(), events_[i + 1].get()));
      profile_[i].seconds.push_back(seconds);
    }
    return absl::OkStatus();
  }

  absl::Status Check(absl::Span<const Tensor* const> inputs, absl::Span<Tensor* const> outputs) const {
    if (inputs.size() != input_types().size() || outputs.size() != output_types().size()) {
      return absl::InvalidArgumentError(absl::StrCat(inputs.size(), " inputs and ", outputs.size(), " outputs, wanted ",
                                                     input_types().size(), " and ", output_types().size()));
    }
    const auto check = [](const Tensor* tensor, const TensorType& wanted, absl::string_view kind, size_t i) {
      if (tensor != nullptr && tensor->type() == wanted) return absl::OkStatus();
      return absl::InvalidArgumentError(absl::StrCat(
          kind, " ", i, " is ", tensor == nullptr ? "null" : ToString(tensor->type()), ", wanted ", ToString(wanted)));
    };
    for (size_t i = 0; i < inputs.size(); ++i) RETURN_IF_ERROR(check(inputs[i], input_types()[i], "input", i));
    for (size_t i = 0; i < outputs.size(); ++i) RETURN_IF_ERROR(check(outputs[i], output_types()[i], "output", i));
    return absl::OkStatus();
  }

  Device* const device_;
  Schedule schedule_;
  kernels::Serial serial_;
  int64_t arena_bytes_ = 0;
  Handle arena_, constants_, host_;
  std::vector<HostBuffer> inputs_, outputs_;
  std::vector<BoundStep> steps_;
  std::vector<StepProfile> profile_;  // One per step.
  std::vector<bool> beside_next_;     // See BesideNext. Only captured so; profiled steps run one by one.
  Handle stream_, start_, end_;
  Handle beside_, fork_, join_;  // The other stream of a capture, and its ends.
  Handle graph_;
  // The first profiled run makes them: an event before the first step and after each.
  std::vector<Handle> events_;
  Handle profiled_graph_;
  bool profiling_ = false;
  double device_seconds_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CudaExecutable>> CudaExecutable::Create(const ir::Graph& graph,
                                                                       const kernels::KernelRegistry& kernels,
                                                                       Device* device,
                                                                       const CudaExecutableOptions& options) {
  FUSELAGE_CHECK(device != nullptr);
  ScheduleOptions schedule_options;
  schedule_options.max_memory_bytes = options.max_memory_bytes;
  ASSIGN_OR_RETURN(Schedule schedule, MakeSchedule(graph, kernels, schedule_options));
  RETURN_IF_ERROR(MoveToDevice(device, &schedule));
  auto executable = std::make_unique<CudaExecutableImpl>(device, std::move(schedule));
  RETURN_IF_ERROR(executable->Init(options, graph.name()));
  return executable;
}

}  // namespace fuselage::runtime::cuda
