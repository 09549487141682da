#include "runtime/cuda/fake_api.h"

#include <cstdlib>
#include <cstring>
#include <typeinfo>
#include <utility>

#include "kernels/core/parallel.h"
#include "runtime/reorder.h"

namespace fuselage::runtime::cuda {
namespace {

constexpr Error kInvalidValue = 1, kMemoryAllocation = 2, kInvalidResourceHandle = 400, kNotReady = 600,
                kStreamCaptureUnsupported = 900, kStreamCaptureInvalidated = 901, kStreamCaptureUnjoined = 904;
// What cudaMalloc aligns to, in bytes.
constexpr int64_t kAlignment = 256;

struct FakeEvent {
  int64_t ms = -1;               // -1: has not happened.
  Stream captured_on = nullptr;  // Recorded in the capture of this stream.
};

}  // namespace

Error FakeApi::Next() {
  const int call = calls_++;
  if (fail_at_ < 0 || call < fail_at_ || (call > fail_at_ && !lost_)) return 0;
  return error_;
}

template <typename T>
Error FakeApi::Make(void** handle, T value) {
  if (Error error = Next()) return error;
  *handle = new T(std::move(value));
  const std::lock_guard<std::mutex> lock(mutex_);
  live_[*handle] = typeid(T).name();
  return 0;
}

template <typename T>
Error FakeApi::Destroy(void* handle) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto it = live_.find(handle);
  if (it == live_.end() || it->second != typeid(T).name()) return kInvalidResourceHandle;
  live_.erase(it);
  delete static_cast<T*>(handle);
  return 0;
}

std::string FakeApi::ErrorString(Error error) { return error == kMemoryAllocation ? "out of memory" : "fake error"; }

Error FakeApi::GetLastError() {
  if (Error error = Next()) return error;
  return last_error_.exchange(0);
}

Error FakeApi::DriverVersion(int* version) {
  *version = driver_version;
  return Next();
}

Error FakeApi::GetDeviceCount(int* count) {
  *count = device_count;
  if (Error error = Next()) return error;
  return device_count_error;
}

Error FakeApi::GetProperties(int device, DeviceProperties* result) {
  if (device < 0 || device >= device_count) return kInvalidValue;
  *result = properties;
  return Next();
}

Error FakeApi::SetDevice(int device) { return device >= 0 && device < device_count ? Next() : kInvalidValue; }

Error FakeApi::DeviceSynchronize() { return Next(); }

int FakeApi::live_handles() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<int>(live_.size() + memory_.size());
}

int64_t FakeApi::device_bytes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  int64_t bytes = 0;
  for (const auto& [data, block] : memory_) bytes += block.device ? block.bytes : 0;
  return bytes;
}

Error FakeApi::Allocate(void** data, int64_t bytes, bool device) {
  if (Error error = Next()) return error;
  if (device && device_bytes() + bytes > properties.memory_bytes) return kMemoryAllocation;
  *data = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  std::memset(*data, 0xcd, bytes);
  const std::lock_guard<std::mutex> lock(mutex_);
  memory_[static_cast<uint8_t*>(*data)] = {bytes, device};
  return 0;
}

Error FakeApi::Free(void* data) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (memory_.erase(static_cast<uint8_t*>(data)) == 0) return kInvalidValue;
  std::free(data);
  return 0;
}

bool FakeApi::Contains(const void* data, int64_t bytes, bool device) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const uint8_t* begin = static_cast<const uint8_t*>(data);
  auto it = memory_.upper_bound(begin);
  if (it == memory_.begin()) return false;
  --it;
  return it->second.device == device && begin + bytes <= it->first + it->second.bytes;
}

thread_local Overlap FakeApi::next_launch_ = Overlap::kNone;

void FakeApi::Launch(Stream handle, std::function<void()> work) {
  FakeStream& stream = *static_cast<FakeStream*>(handle);
  const Overlap now = next_launch_;
  if (now == Overlap::kBeside) next_launch_ = Overlap::kNext;
  stream.invalid |= stream.capturing && now != Overlap::kNone && !stream.after_kernel;
  Work& works = stream.capturing ? stream.captured : stream.pending;
  // What is beside another may come before it.
  const bool first = now == Overlap::kBeside && !works.empty();
  works.insert(first ? works.end() - 1 : works.end(), {std::move(work), now});
  stream.after_kernel = true;
}

void FakeApi::Append(Stream handle, std::function<void()> work) {
  FakeStream& stream = *static_cast<FakeStream*>(handle);
  (stream.capturing ? stream.captured : stream.pending).push_back({std::move(work)});
  stream.after_kernel = false;
}

Error FakeApi::MemsetAsync(void* data, int value, int64_t bytes, Stream stream) {
  if (!Contains(data, bytes, true)) return kInvalidValue;
  if (Error error = Next()) return error;
  Append(stream, [=] { std::memset(data, value, bytes); });
  return 0;
}

Error FakeApi::MemcpyAsync(void* to, const void* from, int64_t bytes, Direction direction, Stream stream) {
  if (Error error = Next()) return error;
  if (Contains(to, bytes, true) != (direction != Direction::kDeviceToHost) ||
      Contains(from, bytes, true) != (direction != Direction::kHostToDevice)) {
    return kInvalidValue;
  }
  if (direction == Direction::kHostToDevice) {
    const std::lock_guard<std::mutex> lock(mutex_);
    uploads_.push_back(bytes);
  }
  Append(stream, [=] { std::memcpy(to, from, bytes); });
  return 0;
}

Error FakeApi::StreamCreate(Stream* stream) { return Make(stream, FakeStream()); }
Error FakeApi::StreamDestroy(Stream stream) { return Destroy<FakeStream>(stream); }

Error FakeApi::StreamSynchronize(Stream handle) {
  if (Error error = Next()) return error;
  FakeStream& stream = *static_cast<FakeStream*>(handle);
  if (stream.capturing) return kStreamCaptureUnsupported;
  for (const Node& node : std::exchange(stream.pending, {})) node.work();
  return 0;
}

Error FakeApi::BeginCapture(Stream handle) {
  if (Error error = Next()) return error;
  FakeStream& stream = *static_cast<FakeStream*>(handle);
  if (stream.capturing) return kStreamCaptureUnsupported;
  stream.capturing = true;
  stream.after_kernel = stream.invalid = false;
  return 0;
}

Error FakeApi::EndCapture(Stream handle, Graph* graph) {
  FakeStream& stream = *static_cast<FakeStream*>(handle);
  const bool unjoined = std::exchange(stream.forks, 0) > 0;
  stream.capturing = false;
  Work captured = std::exchange(stream.captured, {});
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    captured_overlaps_.clear();
    for (const Node& node : captured) {
      if (!node.is_event) captured_overlaps_.push_back(node.overlap);
    }
    captured_nodes_ = static_cast<int>(captured_overlaps_.size());
  }
  if (stream.invalid) return kStreamCaptureInvalidated;
  return unjoined ? kStreamCaptureUnjoined : Make(graph, std::move(captured));
}

Error FakeApi::GraphDestroy(Graph graph) { return Destroy<Work>(graph); }

Error FakeApi::GraphInstantiate(Graph graph, GraphExec* exec) { return Make(exec, *static_cast<Work*>(graph)); }

Error FakeApi::GraphExecDestroy(GraphExec exec) { return Destroy<Work>(exec); }

Error FakeApi::GraphLaunch(GraphExec exec, Stream stream) {
  if (Error error = Next()) return error;
  ++launched_graphs_;
  for (const Node& node : *static_cast<Work*>(exec)) Append(stream, node.work);
  return 0;
}

Error FakeApi::EventCreate(Event* event) { return Make(event, FakeEvent()); }
Error FakeApi::EventDestroy(Event event) { return Destroy<FakeEvent>(event); }

// What a stream did between fork and join comes before what the other one did meanwhile: an order that the device may
// choose, and the opposite of that of the calls.
Error FakeApi::StreamWaitEvent(Stream handle, Event event) {
  if (Error error = Next()) return error;
  FakeStream& stream = *static_cast<FakeStream*>(handle);
  FakeStream* other = static_cast<FakeStream*>(static_cast<FakeEvent*>(event)->captured_on);
  if (other == nullptr) return kStreamCaptureUnsupported;  // Nothing else waits here.
  if (other->origin == &stream) {
    const auto at = stream.captured.begin() + static_cast<std::ptrdiff_t>(other->forked_at);
    stream.captured.insert(at, other->captured.begin(), other->captured.end());
    stream.invalid |= other->invalid;
    stream.after_kernel &= other->after_kernel;
    *other = FakeStream();
    --stream.forks;
    return 0;
  }
  if (!other->capturing || stream.capturing) return kStreamCaptureUnsupported;
  stream.capturing = true;
  stream.after_kernel = other->after_kernel;
  stream.origin = other;
  stream.forked_at = other->captured.size();
  ++other->forks;
  const std::lock_guard<std::mutex> lock(mutex_);
  ++forks_;
  return 0;
}

Error FakeApi::EventRecord(Event event, Stream stream) {
  if (Error error = Next()) return error;
  const bool capturing = static_cast<FakeStream*>(stream)->capturing;
  static_cast<FakeEvent*>(event)->captured_on = capturing ? stream : nullptr;
  if (!capturing) LaunchRecord(event, stream);
  return 0;
}

Error FakeApi::EventRecordInGraph(Event event, Stream stream) {
  if (Error error = Next()) return error;
  FakeStream& of = *static_cast<FakeStream*>(stream);
  if (!of.capturing) return kInvalidValue;
  LaunchRecord(event, stream);
  of.captured.back().is_event = true;
  return 0;
}

void FakeApi::LaunchRecord(Event event, Stream stream) {
  Append(stream, [this, event] { static_cast<FakeEvent*>(event)->ms = ++clock_ms_; });
}

Error FakeApi::EventElapsedMs(float* ms, Event start, Event end) {
  if (Error error = Next()) return error;
  const int64_t from = static_cast<FakeEvent*>(start)->ms, to = static_cast<FakeEvent*>(end)->ms;
  if (from < 0 || to < 0) return kNotReady;
  *ms = static_cast<float>(to - from);
  return 0;
}

Error FakeApi::Transpose(int64_t batch, int64_t rows, int64_t columns, int64_t element_bytes, const void* from,
                         void* to, Stream stream) {
  if (Error error = Next()) return error;
  const int64_t bytes = batch * rows * columns * element_bytes;
  if (!Contains(from, bytes, true) || !Contains(to, bytes, true)) return kInvalidValue;
  Launch(stream, [=] {
    kernels::Serial serial;
    runtime::Transpose(batch, rows, columns, element_bytes, from, to, serial);
  });
  return 0;
}

}  // namespace fuselage::runtime::cuda
