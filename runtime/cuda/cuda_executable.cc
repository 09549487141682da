#include "runtime/cuda/cuda_executable.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/base/status.h"
#include "runtime/executor.h"
#include "runtime/memory_plan.h"

namespace fuselage::runtime::cuda {
namespace {

using kernels::Buffer;

// What the host copies before the device begins to: enough that a call's few microseconds do not matter.
constexpr int64_t kPieceBytes = 4 << 20;

// A graph's input or output: its place in the arena and in pinned host memory.
struct HostBuffer {
  Buffer device;
  uint8_t* host = nullptr;
};

class CudaExecutor final : public Executor {
 public:
  CudaExecutor(Device* device, kernels::Parallel* host) : device_(device), host_threads_(host ? host : &serial_) {}

  ~CudaExecutor() override {
    // What an error left on the stream may still use the memory.
    if (stream_ != nullptr) device_->Synchronize(stream_.get()).IgnoreError();
  }

  absl::Status Init() {
    ASSIGN_OR_RETURN(stream_, device_->NewStream());
    ASSIGN_OR_RETURN(beside_, device_->NewStream());
    ASSIGN_OR_RETURN(fork_, device_->NewEvent());
    ASSIGN_OR_RETURN(join_, device_->NewEvent());
    ASSIGN_OR_RETURN(start_, device_->NewEvent());
    ASSIGN_OR_RETURN(end_, device_->NewEvent());
    return absl::OkStatus();
  }

  absl::string_view name() const override { return "CUDA"; }
  bool on_host() const override { return false; }

  // Pairs of kernels that multiply, and do not need each other. So a convolution of the shortcut fills the
  // multiprocessors that the one beside it leaves idle.
  void PairSteps(absl::Span<StepSpec> steps) const override {
    for (size_t i = 0; i + 1 < steps.size(); ++i) {
      StepSpec &step = steps[i], &next = steps[i + 1];
      const bool needed = std::any_of(next.inputs.begin(), next.inputs.end(), [&](int input) {
        return std::find(step.outputs.begin(), step.outputs.end(), input) != step.outputs.end();
      });
      if (needed || step.macs == 0 || next.macs == 0) continue;
      step.beside_next = true;
      ++i;
    }
  }

  absl::StatusOr<uint8_t*> Allocate(int64_t bytes, absl::string_view what) override {
    ASSIGN_OR_RETURN(Handle memory, device_->Allocate(bytes, what));
    RETURN_IF_ERROR(device_->Fill(memory.get(), 0, bytes, stream_.get()));
    return static_cast<uint8_t*>(memory_.emplace_back(std::move(memory)).get());
  }

  absl::StatusOr<const uint8_t*> Place(const Tensor& constant) override {
    ASSIGN_OR_RETURN(constants_.emplace_back(),
                     device_->Upload(constant.raw_data(), constant.byte_size(), "a constant"));
    return static_cast<const uint8_t*>(constants_.back().get());
  }

  absl::Status Prepare(const BoundProgram& program) override {
    RETURN_IF_ERROR(MakeHostBuffers(program));
    // Kernels may have uploaded their weights on another stream.
    RETURN_IF_ERROR(device_->Synchronize());
    for (const BoundStep& step : program.steps) {
      RETURN_IF_ERROR(Launch(step, stream_.get()));
      RETURN_IF_ERROR(Annotate(device_->Synchronize(stream_.get()), step.name()));
    }
    // The events are in the graph: what the host takes to launch it is not the device's time.
    ASSIGN_OR_RETURN(graph_, device_->Capture(stream_.get(), [&]() -> absl::Status {
      RETURN_IF_ERROR(device_->RecordInGraph(start_.get(), stream_.get()));
      RETURN_IF_ERROR(LaunchSteps(program));
      return device_->RecordInGraph(end_.get(), stream_.get());
    }));
    return absl::OkStatus();
  }

  absl::Status Run(const BoundProgram& program, absl::Span<const Tensor* const> inputs,
                   absl::Span<Tensor* const> outputs, std::vector<double>* seconds) override {
    Stream stream = stream_.get();
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto& [device, host] = inputs_[i];
      const auto* from = static_cast<const uint8_t*>(inputs[i]->raw_data());
      // While the device takes one piece, the host copies the next.
      for (int64_t begin = 0; begin < device.bytes; begin += kPieceBytes) {
        const int64_t bytes = std::min(kPieceBytes, device.bytes - begin);
        CopyOnHost(host + begin, from + begin, bytes);
        RETURN_IF_ERROR(device_->Copy(static_cast<uint8_t*>(device.data) + begin, host + begin, bytes,
                                      Direction::kHostToDevice, stream));
      }
    }
    if (seconds != nullptr) {
      RETURN_IF_ERROR(LaunchProfiled(program));
    } else {
      RETURN_IF_ERROR(device_->Launch(graph_.get(), stream));
    }
    for (const auto& [device, host] : outputs_) {
      RETURN_IF_ERROR(device_->Copy(host, device.data, device.bytes, Direction::kDeviceToHost, stream));
    }
    RETURN_IF_ERROR(device_->Synchronize(stream));
    for (size_t i = 0; i < outputs.size(); ++i) {
      const auto& [device, host] = outputs_[i];
      CopyOnHost(static_cast<uint8_t*>(outputs[i]->raw_data()), host, device.bytes);
    }
    device_seconds_ = 0;
    for (size_t i = 0; seconds != nullptr && i < seconds->size(); ++i) {
      ASSIGN_OR_RETURN((*seconds)[i], device_->SecondsBetween(events_[i].get(), events_[i + 1].get()));
    }
    if (seconds != nullptr) return absl::OkStatus();
    ASSIGN_OR_RETURN(device_seconds_, device_->SecondsBetween(start_.get(), end_.get()));
    return absl::OkStatus();
  }

  std::optional<double> device_seconds() const override { return device_seconds_; }

 private:
  absl::Status Copy(const void* from, void* to, int64_t bytes) override {
    return device_->Copy(to, from, bytes, Direction::kDeviceToDevice, stream_.get());
  }
  absl::Status Reorder(const TensorType& type, const void* from, void* to, kernels::Parallel&) override {
    const int64_t channels = type.shape[1], pixels = type.shape[2] * type.shape[3];
    const bool to_nhwc = type.layout == Layout::kRowMajor;
    return device_->Transpose(type.shape[0], to_nhwc ? channels : pixels, to_nhwc ? pixels : channels,
                              ByteSize(type.dtype), from, to, stream_.get());
  }

  // One thread copies some 10 GB/s, PCIe 5 moves five times as much.
  void CopyOnHost(uint8_t* to, const uint8_t* from, int64_t bytes) {
    constexpr int64_t kGrain = 256 << 10;
    kernels::ForRanges(*host_threads_, bytes, kGrain,
                       [&](int64_t begin, int64_t end) { std::memcpy(to + begin, from + begin, end - begin); });
  }

  absl::Status MakeHostBuffers(const BoundProgram& program) {
    const auto aligned = [](int64_t bytes) {
      return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
    };
    int64_t bytes = 0;
    for (const auto* buffers : {&program.inputs, &program.outputs}) {
      for (const Buffer& buffer : *buffers) bytes += aligned(buffer.bytes);
    }
    ASSIGN_OR_RETURN(host_, device_->AllocateHost(bytes, "inputs and outputs"));
    uint8_t* next = static_cast<uint8_t*>(host_.get());
    const auto place = [&](const std::vector<Buffer>& buffers, std::vector<HostBuffer>& places) {
      for (const Buffer& buffer : buffers) {
        places.push_back({buffer, next});
        next += aligned(buffer.bytes);
      }
    };
    place(program.inputs, inputs_);
    place(program.outputs, outputs_);
    return absl::OkStatus();
  }

  absl::Status Launch(const BoundStep& step, Stream stream) {
    RETURN_IF_ERROR(RunStep(step, &serial_, stream));
    return Annotate(device_->LaunchStatus(), step.name());
  }

  absl::Status LaunchSteps(const BoundProgram& program) {
    if (device_->overlaps_kernels()) return LaunchOverlapping(program);
    for (size_t i = 0; i < program.steps.size(); ++i) {
      const BoundStep& step = program.steps[i];
      if (!step.spec->beside_next) {
        RETURN_IF_ERROR(Launch(step, stream_.get()));
        continue;
      }
      RETURN_IF_ERROR(device_->Record(fork_.get(), stream_.get()));
      RETURN_IF_ERROR(device_->Wait(beside_.get(), fork_.get()));
      RETURN_IF_ERROR(Launch(step, stream_.get()));
      RETURN_IF_ERROR(Launch(program.steps[++i], beside_.get()));
      RETURN_IF_ERROR(device_->Record(join_.get(), beside_.get()));
      RETURN_IF_ERROR(device_->Wait(stream_.get(), join_.get()));
    }
    return absl::OkStatus();
  }

  // One kernel behind the other, also those that are beside each other: to fork and join takes longer.
  absl::Status LaunchOverlapping(const BoundProgram& program) {
    Overlap overlap = Overlap::kNone;
    for (const BoundStep& step : program.steps) {
      device_->LetNextLaunch(overlap);
      const absl::Status status = Launch(step, stream_.get());
      device_->LetNextLaunch(Overlap::kNone);
      RETURN_IF_ERROR(status);
      overlap = step.spec->beside_next               ? Overlap::kBeside
                : step.spec->kind == StepKind::kCopy ? Overlap::kNone
                                                     : Overlap::kNext;
    }
    return absl::OkStatus();
  }

  absl::Status LaunchStepsAndEvents(const BoundProgram& program) {
    RETURN_IF_ERROR(device_->RecordInGraph(events_[0].get(), stream_.get()));
    for (size_t i = 0; i < program.steps.size(); ++i) {
      RETURN_IF_ERROR(Launch(program.steps[i], stream_.get()));
      RETURN_IF_ERROR(device_->RecordInGraph(events_[i + 1].get(), stream_.get()));
    }
    return absl::OkStatus();
  }

  absl::Status LaunchProfiled(const BoundProgram& program) {
    while (events_.size() <= program.steps.size()) {
      ASSIGN_OR_RETURN(Handle event, device_->NewEvent());
      events_.push_back(std::move(event));
    }
    if (profiled_graph_ == nullptr) {
      ASSIGN_OR_RETURN(profiled_graph_, device_->Capture(stream_.get(), [&] { return LaunchStepsAndEvents(program); }));
    }
    return device_->Launch(profiled_graph_.get(), stream_.get());
  }

  Device* const device_;
  kernels::Serial serial_;
  kernels::Parallel* const host_threads_;
  std::vector<Handle> memory_;
  std::vector<std::shared_ptr<void>> constants_;
  Handle host_;
  std::vector<HostBuffer> inputs_, outputs_;
  Handle stream_, start_, end_;
  // The other stream of a capture, and its ends, where kernels do not overlap. Profiled steps run one by one.
  Handle beside_, fork_, join_;
  Handle graph_;
  // The first profiled run makes them: an event before the first step and after each.
  std::vector<Handle> events_;
  Handle profiled_graph_;
  double device_seconds_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Executable>> CreateExecutable(const ir::Graph& graph,
                                                             const kernels::KernelRegistry& kernels, Device* device,
                                                             const CudaExecutableOptions& options) {
  FUSELAGE_CHECK(device != nullptr);
  auto executor = std::make_unique<CudaExecutor>(device, options.host);
  RETURN_IF_ERROR(executor->Init());
  ExecutableOptions of_all;
  of_all.isa = kernels::Isa::kScalar;
  of_all.max_memory_bytes = options.max_memory_bytes;
  return Executable::Create(graph, kernels, std::move(executor), of_all);
}

}  // namespace fuselage::runtime::cuda
