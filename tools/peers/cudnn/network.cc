#include "tools/peers/cudnn/network.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "kernels/cuda/device.h"
#include "tools/peers/cudnn/choice.h"
#include "tools/peers/cudnn/trials.h"

namespace fuselage::peers::cudnn {
namespace {

using ::fuselage::cuda::DeviceBuffer;
using ::fuselage::cuda::ToStatus;

constexpr std::chrono::milliseconds kLimit(
    20'000);                             // Of a trial: loading cuDNN, compiling, a few milliseconds of runs.
constexpr int kRuns = 10, kReplays = 5;  // Of a trial: runs in a CUDA graph, and its launches.

// cuDNN on the current device.
struct Device {
  const Library* library = nullptr;
  void* handle = nullptr;
  cudaStream_t stream = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;
  Descriptor properties{nullptr, nullptr};

  // Once for the process.
  static absl::StatusOr<const Device*> Open() {
    static const auto* opened = new absl::StatusOr<std::unique_ptr<Device>>(Make());
    RETURN_IF_ERROR(opened->status());
    return (*opened)->get();
  }

  static absl::StatusOr<std::unique_ptr<Device>> Make() {
    auto device = std::make_unique<Device>();
    ASSIGN_OR_RETURN(device->library, Library::Open());
    RETURN_IF_ERROR(ToStatus(cudaStreamCreateWithFlags(&device->stream, cudaStreamNonBlocking), "cudaStreamCreate"));
    RETURN_IF_ERROR(ToStatus(cudaEventCreate(&device->begin), "cudaEventCreate"));
    RETURN_IF_ERROR(ToStatus(cudaEventCreate(&device->end), "cudaEventCreate"));
    RETURN_IF_ERROR(device->library->Check(device->library->Create(&device->handle), "cudnnCreate"));
    RETURN_IF_ERROR(device->library->Check(device->library->SetStream(device->handle, device->stream), "stream"));
    ASSIGN_OR_RETURN(device->properties, CurrentDevice(*device->library));
    return device;
  }
};

// A convolution with its parameters on the device.
struct Ready {
  FusedConvolution fused;
  Plan plan;
  DeviceBuffer weight, scale, bias, workspace;
  std::array<void*, 6> pointers = {};

  absl::Status Enqueue(const Device& device) const {
    return fused.Execute(device.handle, plan, pointers, workspace.data());
  }
};

absl::StatusOr<DeviceBuffer> Upload(const Tensor& tensor, absl::string_view what) {
  if (tensor.num_elements() == 0) return DeviceBuffer();
  return DeviceBuffer::Upload(tensor.raw_data(), tensor.byte_size(), what);
}

// NotFound: it has fewer candidates.
absl::StatusOr<Ready> MakeReady(const Device& device, const LoweredConvolution& lowered, int candidate) {
  ASSIGN_OR_RETURN(FusedConvolution fused, FusedConvolution::Create(*device.library, lowered.convolution));
  ASSIGN_OR_RETURN(const std::vector<Descriptor> candidates, fused.Candidates(device.properties.get()));
  if (candidate >= static_cast<int>(candidates.size())) return absl::NotFoundError("no such candidate");
  ASSIGN_OR_RETURN(Plan plan, fused.PlanOf(candidates[candidate].get(), device.properties.get()));
  Ready ready{std::move(fused), std::move(plan), {}, {}, {}, {}};
  ASSIGN_OR_RETURN(ready.weight, Upload(lowered.weight, "weights"));
  ASSIGN_OR_RETURN(ready.scale, Upload(lowered.scale, "scales"));
  ASSIGN_OR_RETURN(ready.bias, Upload(lowered.bias, "biases"));
  if (ready.plan.workspace_bytes > 0) {
    ASSIGN_OR_RETURN(ready.workspace, DeviceBuffer::Allocate(ready.plan.workspace_bytes, "cuDNN's workspace"));
  }
  ready.pointers[kWeight - 1] = ready.weight.data();
  ready.pointers[kScale - 1] = ready.scale.data();
  ready.pointers[kBias - 1] = ready.bias.data();
  return ready;
}

// What `enqueue` puts on the stream, as a CUDA graph between the device's events, which are its first and last nodes,
// as ours are; it has run once before, so that all code is loaded.
absl::StatusOr<cudaGraphExec_t> Record(const Device& device, const std::function<absl::Status()>& enqueue) {
  RETURN_IF_ERROR(enqueue());
  RETURN_IF_ERROR(ToStatus(cudaStreamSynchronize(device.stream), "a first run"));
  RETURN_IF_ERROR(ToStatus(cudaStreamBeginCapture(device.stream, cudaStreamCaptureModeThreadLocal), "capture"));
  const auto record = [&](cudaEvent_t event) {
    return ToStatus(cudaEventRecordWithFlags(event, device.stream, cudaEventRecordExternal),
                    "cudaEventRecordWithFlags");
  };
  absl::Status enqueued = record(device.begin);
  if (enqueued.ok()) enqueued = enqueue();
  if (enqueued.ok()) enqueued = record(device.end);
  cudaGraph_t graph = nullptr;
  const cudaError_t error = cudaStreamEndCapture(device.stream, &graph);
  RETURN_IF_ERROR(enqueued);
  RETURN_IF_ERROR(ToStatus(error, "capture"));
  cudaGraphExec_t exec = nullptr;
  const absl::Status made = ToStatus(cudaGraphInstantiate(&exec, graph, 0), "cudaGraphInstantiate");
  cudaGraphDestroy(graph);
  RETURN_IF_ERROR(made);
  return exec;
}

// Nanoseconds between its events.
absl::StatusOr<int64_t> Launch(const Device& device, cudaGraphExec_t graph) {
  RETURN_IF_ERROR(ToStatus(cudaGraphLaunch(graph, device.stream), "cudaGraphLaunch"));
  RETURN_IF_ERROR(ToStatus(cudaStreamSynchronize(device.stream), "a run"));
  float ms = 0;
  RETURN_IF_ERROR(ToStatus(cudaEventElapsedTime(&ms, device.begin, device.end), "cudaEventElapsedTime"));
  return static_cast<int64_t>(1e6 * ms);
}

int64_t Bytes(const std::array<int64_t, 4>& dims, DType dtype) {
  return dims[0] * dims[1] * dims[2] * dims[3] * ByteSize(dtype);
}

// Values that no convolution computes. Any do: no time depends on them, beyond what the clock makes of the power.
absl::StatusOr<DeviceBuffer> Values(const std::array<int64_t, 4>& dims, DType dtype) {
  return Upload(SeededTensor({dtype, {dims.begin(), dims.end()}, std::nullopt, Layout::kRowMajor}, 1), "values");
}

// The fewest nanoseconds of a run.
absl::StatusOr<double> Time(const Device& device, const LoweredConvolution& lowered, int candidate) {
  ASSIGN_OR_RETURN(Ready ready, MakeReady(device, lowered, candidate));
  const Convolution& c = lowered.convolution;
  ASSIGN_OR_RETURN(const DeviceBuffer input, Values(c.input, c.dtype));
  ASSIGN_OR_RETURN(const DeviceBuffer output, DeviceBuffer::Allocate(Bytes(c.output, c.dtype), "outputs"));
  ASSIGN_OR_RETURN(const DeviceBuffer residual, Values(c.output, c.dtype));
  ready.pointers[kInput - 1] = input.data();
  ready.pointers[kOutput - 1] = output.data();
  ready.pointers[kResidual - 1] = residual.data();
  ASSIGN_OR_RETURN(cudaGraphExec_t graph, Record(device, [&]() -> absl::Status {
                     for (int i = 0; i < kRuns; ++i) RETURN_IF_ERROR(ready.Enqueue(device));
                     return absl::OkStatus();
                   }));
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int i = 0; i < kReplays; ++i) {
    ASSIGN_OR_RETURN(const int64_t ns, Launch(device, graph));
    least = std::min(least, ns);
  }
  cudaGraphExecDestroy(graph);
  return static_cast<double>(least) / kRuns;
}

// The numbers of the fastest candidates.
absl::StatusOr<std::map<Convolution, int>> Choose(const std::vector<LoweredConvolution>& all,
                                                  const std::function<void(const std::string&)>& report) {
  const auto opened = TryEach(1, kLimit, [](int) -> absl::StatusOr<double> {
    RETURN_IF_ERROR(Annotate(cuda::CurrentDevice().status(), "no CUDA device"));
    RETURN_IF_ERROR(Device::Open().status());
    return 0;
  });
  RETURN_IF_ERROR(opened[0].status());
  std::map<Convolution, const LoweredConvolution*> distinct;
  for (const LoweredConvolution& lowered : all) distinct.emplace(lowered.convolution, &lowered);
  std::vector<const LoweredConvolution*> order;
  for (const auto& [convolution, lowered] : distinct) order.push_back(lowered);
  const int count = static_cast<int>(order.size()) * kMostCandidates;
  const auto results = TryEach(count, kLimit, [&](int i) -> absl::StatusOr<double> {
    ASSIGN_OR_RETURN(const Device* const device, Device::Open());
    return Time(*device, *order[i / kMostCandidates], i % kMostCandidates);
  });
  std::map<Convolution, int> chosen;
  for (size_t i = 0; i < order.size(); ++i) {
    const std::string name = absl::StrCat("%", order[i]->node->name());
    const auto candidates = absl::MakeConstSpan(results).subspan(i * kMostCandidates, kMostCandidates);
    for (const std::string& line : Accidents(candidates)) report(absl::StrCat(name, ": ", line));
    const absl::StatusOr<int> fastest = Fastest(candidates);
    RETURN_IF_ERROR(Annotate(fastest.status(), name));
    chosen[order[i]->convolution] = *fastest;
  }
  return chosen;
}

class CudnnNetwork final : public Network {
 public:
  CudnnNetwork(const Device& device, int sm) : device_(device), sm_(sm) {}
  ~CudnnNetwork() override {
    if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
  }

  absl::Status Build(const std::vector<LoweredConvolution>& all, const std::map<Convolution, int>& chosen) {
    for (const LoweredConvolution& lowered : all) {
      const Convolution& c = lowered.convolution;
      absl::StatusOr<Ready> ready = MakeReady(device_, lowered, chosen.at(c));
      RETURN_IF_ERROR(Annotate(ready.status(), absl::StrCat("%", lowered.node->name())));
      ASSIGN_OR_RETURN(ready->pointers[kInput - 1], Buffer(lowered.node->operand(0), c.input, c.dtype));
      if (c.residual) {
        ASSIGN_OR_RETURN(ready->pointers[kResidual - 1], Buffer(lowered.node->operand(1), c.output, c.dtype));
      }
      ASSIGN_OR_RETURN(ready->pointers[kOutput - 1], Buffer(lowered.node, c.output, c.dtype));
      steps_.push_back(*std::move(ready));
    }
    ASSIGN_OR_RETURN(graph_, Record(device_, [&]() -> absl::Status {
                       for (const Ready& step : steps_) RETURN_IF_ERROR(step.Enqueue(device_));
                       return absl::OkStatus();
                     }));
    return absl::OkStatus();
  }

  std::string version() const override {
    const size_t version = device_.library->GetVersion(), major = version >= 90000 ? 10000 : 1000;
    return absl::StrCat(version / major, ".", version % major / 100, ".", version % 100);
  }
  std::string isa() const override { return absl::StrCat("sm_", sm_); }
  absl::Status Run() override {
    ASSIGN_OR_RETURN(device_ns_, Launch(device_, graph_));
    return absl::OkStatus();
  }
  int64_t device_ns() const override { return device_ns_; }
  absl::StatusOr<Tensor> Value(const std::string& node) const override {
    const auto value = values_.find(node);
    if (value == values_.end()) return absl::NotFoundError(absl::StrCat("no convolution reads or writes %", node));
    Tensor tensor(value->second.type);
    RETURN_IF_ERROR(ToStatus(
        cudaMemcpy(tensor.raw_data(), value->second.buffer.data(), tensor.byte_size(), cudaMemcpyDeviceToHost), node));
    return tensor;
  }

 private:
  struct Placed {
    TensorType type;
    DeviceBuffer buffer;
  };

  // The value's memory: a convolution reads where the one before it wrote.
  absl::StatusOr<void*> Buffer(const ir::Node* value, const std::array<int64_t, 4>& dims, DType dtype) {
    const TensorType type = {dtype, {dims[0], dims[2], dims[3], dims[1]}, std::nullopt, Layout::kRowMajor};
    const auto [placed, is_new] = values_.try_emplace(value->name(), Placed{type, {}});
    if (is_new && value->IsOp("int8.conv2d")) {
      ASSIGN_OR_RETURN(placed->second.buffer, DeviceBuffer::Allocate(type.byte_size(), "a convolution's result"));
    } else if (is_new) {
      ASSIGN_OR_RETURN(placed->second.buffer, Values(dims, dtype));
    }
    if (placed->second.type == type) return placed->second.buffer.data();
    return absl::UnimplementedError(absl::StrCat("%", value->name(), ": found a reader of ", ToString(type),
                                                 " and one of ", ToString(placed->second.type)));
  }

  const Device& device_;
  const int sm_;
  std::map<std::string, Placed> values_;
  std::vector<Ready> steps_;
  cudaGraphExec_t graph_ = nullptr;
  int64_t device_ns_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Network>> MakeNetwork(const ir::Graph& graph, DType dtype,
                                                     const std::function<void(const std::string&)>& report) {
  ASSIGN_OR_RETURN(const std::vector<LoweredConvolution> all, LoweredConvolutions(graph, dtype));
  ASSIGN_OR_RETURN(const auto chosen, Choose(all, report));
  ASSIGN_OR_RETURN(const auto properties, cuda::CurrentDevice());
  ASSIGN_OR_RETURN(const Device* const device, Device::Open());
  auto network = std::make_unique<CudnnNetwork>(*device, properties.sm);
  RETURN_IF_ERROR(network->Build(all, chosen));
  return network;
}

}  // namespace fuselage::peers::cudnn
