// Device: the Api with every call checked, and handles that free themselves.
#ifndef FUSELAGE_RUNTIME_CUDA_DEVICE_H_
#define FUSELAGE_RUNTIME_CUDA_DEVICE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/cuda/shared_uploads.h"
#include "runtime/cuda/api.h"

namespace fuselage::runtime::cuda {

// The kernels use what compute capability 8.0 brought: mma of u8 and s8, cp.async.
inline constexpr int kLeastCapability = 80;

// Memory, a stream, an event or a graph. A device that is lost cannot free it either: that error is dropped.
struct Release {
  Api* api = nullptr;
  Error (Api::*function)(void*) = nullptr;
  void operator()(void* handle) const { (api->*function)(handle); }
};
using Handle = std::unique_ptr<void, Release>;

// Errors of all calls are ErrorStatus's (kernels/cuda/error_status.h): "cudaMalloc of 44.7 MB for the arena: out of
// memory (2)".
struct DeviceOptions {
  // In a captured graph kernels begin as kNext and kBeside say. From sm_90 on; on others it changes nothing.
  bool overlap_kernels = false;
};

class Device {
 public:
  // The first device, made current. FailedPrecondition says what is missing: a driver, a device, a recent one.
  // `api` must outlive the device.
  static absl::StatusOr<std::unique_ptr<Device>> Open(Api* api, const DeviceOptions& options = {});

  const std::string& name() const { return properties_.name; }
  std::string arch() const;                              // "sm_90"
  const std::string& driver() const { return driver_; }  // The CUDA version that it supports: "13.0".
  int64_t memory_bytes() const { return properties_.memory_bytes; }
  bool overlaps_kernels() const { return options_.overlap_kernels && properties_.major >= 9; }

  // `what` it is for; null where `bytes` is 0.
  absl::StatusOr<Handle> Allocate(int64_t bytes, absl::string_view what);
  absl::StatusOr<Handle> AllocateHost(int64_t bytes, absl::string_view what);
  // A copy of host memory that all share who upload these bytes, complete on return; nobody may write it.
  absl::StatusOr<std::shared_ptr<void>> Upload(const void* data, int64_t bytes, absl::string_view what);
  absl::StatusOr<Handle> NewStream();
  absl::StatusOr<Handle> NewEvent();

  absl::Status Fill(void* data, int value, int64_t bytes, Stream stream);
  absl::Status Copy(void* to, const void* from, int64_t bytes, Direction direction, Stream stream);
  absl::Status Transpose(int64_t batch, int64_t rows, int64_t columns, int64_t element_bytes, const void* from,
                         void* to, Stream stream);
  absl::Status Record(Event event, Stream stream);
  absl::Status Wait(Stream stream, Event event);                  // The stream for the event.
  absl::Status RecordInGraph(Event event, Stream stream);         // In what Capture calls.
  absl::StatusOr<double> SecondsBetween(Event start, Event end);  // Both have happened.

  // What `record` puts on the stream, as a graph to launch. `record` may not wait or allocate.
  template <typename Record>
  absl::StatusOr<Handle> Capture(Stream stream, const Record& record) {
    absl::Status status = BeginCapture(stream);
    if (!status.ok()) return status;
    status = record();
    absl::StatusOr<Handle> graph = EndCapture(stream);
    if (!status.ok()) return status;
    return graph;
  }
  absl::Status Launch(GraphExec graph, Stream stream);
  // See Api.
  void LetNextLaunch(Overlap overlap) { api_->LetNextLaunch(overlap); }

  absl::Status Synchronize();
  absl::Status Synchronize(Stream stream);
  // The error of a launch since the last call.
  absl::Status LaunchStatus();

 private:
  Device(Api* api, const DeviceOptions& options, DeviceProperties properties, std::string driver)
      : api_(api), options_(options), properties_(std::move(properties)), driver_(std::move(driver)) {}

  absl::Status BeginCapture(Stream stream);
  absl::StatusOr<Handle> EndCapture(Stream stream);

  Api* const api_;
  const DeviceOptions options_;
  const DeviceProperties properties_;
  const std::string driver_;
  fuselage::cuda::SharedUploads uploads_;
};

}  // namespace fuselage::runtime::cuda

#endif  // FUSELAGE_RUNTIME_CUDA_DEVICE_H_
