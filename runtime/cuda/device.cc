#include "runtime/cuda/device.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ir/base/status.h"
#include "kernels/cuda/error_status.h"

namespace fuselage::runtime::cuda {
namespace {

constexpr Error kSuccess = 0, kInsufficientDriver = 35, kNoDevice = 100;

std::string Size(int64_t bytes) {
  return bytes < 1000000 ? absl::StrCat(bytes, " bytes") : absl::StrFormat("%.1f MB", static_cast<double>(bytes) / 1e6);
}

// Makes the text only where there is an error: a run checks many calls.
template <typename... Text>
absl::Status Check(Api& api, Error error, const Text&... text) {
  if (error == kSuccess) return absl::OkStatus();
  return fuselage::cuda::ErrorStatus(error, absl::StrCat(text...), api.ErrorString(error));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> Device::Open(Api* api, const DeviceOptions& options) {
  int version = 0;
  RETURN_IF_ERROR(Check(*api, api->DriverVersion(&version), "cudaDriverGetVersion"));
  if (version == 0) return absl::FailedPreconditionError("no NVIDIA driver on this machine");
  const std::string driver = absl::StrCat(version / 1000, ".", version % 1000 / 10);
  int devices = 0;
  const Error error = api->GetDeviceCount(&devices);
  if (error == kInsufficientDriver) {
    return absl::FailedPreconditionError(
        absl::StrCat("the NVIDIA driver supports CUDA ", driver, " only, older than this build's"));
  }
  if (error == kNoDevice || (error == kSuccess && devices == 0)) {
    return absl::FailedPreconditionError("the NVIDIA driver finds no CUDA device (see CUDA_VISIBLE_DEVICES)");
  }
  RETURN_IF_ERROR(Check(*api, error, "cudaGetDeviceCount"));
  DeviceProperties properties;
  RETURN_IF_ERROR(Check(*api, api->GetProperties(0, &properties), "cudaGetDeviceProperties"));
  auto device = std::unique_ptr<Device>(new Device(api, options, std::move(properties), driver));
  if (device->properties_.major * 10 + device->properties_.minor < kLeastCapability) {
    return absl::FailedPreconditionError(
        absl::StrCat(device->name(), " is ", device->arch(), ", the kernels want sm_", kLeastCapability, " or later"));
  }
  RETURN_IF_ERROR(Check(*api, api->SetDevice(0), "cudaSetDevice"));
  return device;
}

std::string Device::arch() const { return absl::StrCat("sm_", properties_.major, properties_.minor); }

absl::StatusOr<Handle> Device::Allocate(int64_t bytes, absl::string_view what) {
  if (bytes == 0) return Handle();
  void* data = nullptr;
  RETURN_IF_ERROR(Check(*api_, api_->Malloc(&data, bytes), "cudaMalloc of ", Size(bytes), " for ", what));
  return Handle(data, {api_, &Api::Free});
}

absl::StatusOr<Handle> Device::AllocateHost(int64_t bytes, absl::string_view what) {
  if (bytes == 0) return Handle();
  void* data = nullptr;
  RETURN_IF_ERROR(Check(*api_, api_->MallocHost(&data, bytes), "cudaMallocHost of ", Size(bytes), " for ", what));
  return Handle(data, {api_, &Api::FreeHost});
}

absl::StatusOr<std::shared_ptr<void>> Device::Upload(const void* data, int64_t bytes, absl::string_view what) {
  const absl::string_view content(static_cast<const char*>(data), static_cast<size_t>(bytes));
  return uploads_.Get(content, [&]() -> absl::StatusOr<std::shared_ptr<void>> {
    ASSIGN_OR_RETURN(Handle memory, Allocate(bytes, what));
    ASSIGN_OR_RETURN(const Handle stream, NewStream());  // Goes before the memory that an error may leave in use.
    RETURN_IF_ERROR(Copy(memory.get(), data, bytes, Direction::kHostToDevice, stream.get()));
    RETURN_IF_ERROR(Synchronize(stream.get()));
    return std::shared_ptr<void>(std::move(memory));
  });
}

absl::StatusOr<Handle> Device::NewStream() {
  Stream stream = nullptr;
  RETURN_IF_ERROR(Check(*api_, api_->StreamCreate(&stream), "cudaStreamCreateWithFlags"));
  return Handle(stream, {api_, &Api::StreamDestroy});
}

absl::StatusOr<Handle> Device::NewEvent() {
  Event event = nullptr;
  RETURN_IF_ERROR(Check(*api_, api_->EventCreate(&event), "cudaEventCreate"));
  return Handle(event, {api_, &Api::EventDestroy});
}

absl::Status Device::Fill(void* data, int value, int64_t bytes, Stream stream) {
  if (bytes == 0) return absl::OkStatus();
  return Check(*api_, api_->MemsetAsync(data, value, bytes, stream), "cudaMemsetAsync");
}

absl::Status Device::Copy(void* to, const void* from, int64_t bytes, Direction direction, Stream stream) {
  if (bytes == 0) return absl::OkStatus();
  return Check(*api_, api_->MemcpyAsync(to, from, bytes, direction, stream), "cudaMemcpyAsync of ", bytes, " bytes");
}

absl::Status Device::Transpose(int64_t batch, int64_t rows, int64_t columns, int64_t element_bytes, const void* from,
                               void* to, Stream stream) {
  if (batch * rows * columns == 0) return absl::OkStatus();
  return Check(*api_, api_->Transpose(batch, rows, columns, element_bytes, from, to, stream), "transposing ", batch,
               " matrices of ", rows, " x ", columns);
}

absl::Status Device::Wait(Stream stream, Event event) {
  return Check(*api_, api_->StreamWaitEvent(stream, event), "cudaStreamWaitEvent");
}

absl::Status Device::Record(Event event, Stream stream) {
  return Check(*api_, api_->EventRecord(event, stream), "cudaEventRecord");
}

absl::Status Device::RecordInGraph(Event event, Stream stream) {
  return Check(*api_, api_->EventRecordInGraph(event, stream), "cudaEventRecordWithFlags");
}

absl::StatusOr<double> Device::SecondsBetween(Event start, Event end) {
  float ms = 0;
  RETURN_IF_ERROR(Check(*api_, api_->EventElapsedMs(&ms, start, end), "cudaEventElapsedTime"));
  return ms * 1e-3;
}

absl::Status Device::BeginCapture(Stream stream) {
  return Check(*api_, api_->BeginCapture(stream), "cudaStreamBeginCapture");
}

absl::StatusOr<Handle> Device::EndCapture(Stream stream) {
  Graph graph = nullptr;
  const Error error = api_->EndCapture(stream, &graph);
  const Handle captured(graph, {api_, &Api::GraphDestroy});
  RETURN_IF_ERROR(Check(*api_, error, "cudaStreamEndCapture"));
  GraphExec exec = nullptr;
  RETURN_IF_ERROR(Check(*api_, api_->GraphInstantiate(graph, &exec), "cudaGraphInstantiate"));
  return Handle(exec, {api_, &Api::GraphExecDestroy});
}

absl::Status Device::Launch(GraphExec graph, Stream stream) {
  return Check(*api_, api_->GraphLaunch(graph, stream), "cudaGraphLaunch");
}

absl::Status Device::Synchronize() { return Check(*api_, api_->DeviceSynchronize(), "cudaDeviceSynchronize"); }

absl::Status Device::Synchronize(Stream stream) {
  return Check(*api_, api_->StreamSynchronize(stream), "cudaStreamSynchronize");
}

absl::Status Device::LaunchStatus() { return Check(*api_, api_->GetLastError(), "kernel launch"); }

}  // namespace fuselage::runtime::cuda
