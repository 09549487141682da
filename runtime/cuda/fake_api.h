// FakeApi: a CUDA device in host memory, for tests. Work waits on its stream until somebody waits for the stream, as on
// a device: a copy that is read too early is not there yet. Errors can be made to happen at any call. Threads may make
// and run things on streams of their own at once; what the last graph was is for tests of one thread.
#ifndef FUSELAGE_RUNTIME_CUDA_FAKE_API_H_
#define FUSELAGE_RUNTIME_CUDA_FAKE_API_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/cuda/api.h"

namespace fuselage::runtime::cuda {

class FakeApi final : public Api {
 public:
  // --- What the machine is like.
  int driver_version = 13000;
  Error device_count_error = 0;
  int device_count = 1;
  DeviceProperties properties{"Fake GPU", 9, 0, int64_t{1} << 30};

  // --- Errors. The call with this number (0: the next) and, if it is one that a device does not recover from, all
  // later ones return `error`. Releases and ErrorString are not counted and succeed.
  void FailAt(int call, Error error, bool lost) {
    calls_ = 0;
    fail_at_ = call;
    error_ = error;
    lost_ = lost;
  }
  bool failed() const { return fail_at_ >= 0 && calls_ > fail_at_; }
  // What the next GetLastError returns.
  void FailLaunch(Error error) { last_error_ = error; }

  // --- What happened.
  int live_handles() const;
  int64_t device_bytes() const;  // Allocated now.
  int launched_graphs() const { return launched_graphs_; }
  int captured_nodes() const { return captured_nodes_; }  // Of the last graph, but for events.
  int forks() const { return forks_; }                    // How often a stream joined another's capture.
  // The sizes of the copies to the device that were asked for, in order.
  const std::vector<int64_t>& uploads() const { return uploads_; }
  // Of the same nodes.
  const std::vector<Overlap>& captured_overlaps() const { return captured_overlaps_; }

  // A kernel launch: `work` runs when the stream gets to it, or becomes part of the graph that is being captured.
  static void Launch(Stream stream, std::function<void()> work);

  std::string ErrorString(Error error) override;
  Error GetLastError() override;
  Error DriverVersion(int* version) override;
  Error GetDeviceCount(int* count) override;
  Error GetProperties(int device, DeviceProperties* properties) override;
  Error SetDevice(int device) override;
  Error DeviceSynchronize() override;
  Error Malloc(void** data, int64_t bytes) override { return Allocate(data, bytes, true); }
  Error Free(void* data) override;
  Error MallocHost(void** data, int64_t bytes) override { return Allocate(data, bytes, false); }
  Error FreeHost(void* data) override { return Free(data); }
  Error MemsetAsync(void* data, int value, int64_t bytes, Stream stream) override;
  Error MemcpyAsync(void* to, const void* from, int64_t bytes, Direction direction, Stream stream) override;
  Error StreamCreate(Stream* stream) override;
  Error StreamDestroy(Stream stream) override;
  Error StreamSynchronize(Stream stream) override;
  Error BeginCapture(Stream stream) override;
  Error EndCapture(Stream stream, Graph* graph) override;
  Error GraphDestroy(Graph graph) override;
  Error GraphInstantiate(Graph graph, GraphExec* exec) override;
  Error GraphExecDestroy(GraphExec exec) override;
  Error GraphLaunch(GraphExec exec, Stream stream) override;
  Error EventCreate(Event* event) override;
  Error EventDestroy(Event event) override;
  Error EventRecord(Event event, Stream stream) override;
  Error StreamWaitEvent(Stream stream, Event event) override;
  Error EventRecordInGraph(Event event, Stream stream) override;
  Error EventElapsedMs(float* ms, Event start, Event end) override;
  void LetNextLaunch(Overlap overlap) override { next_launch_ = overlap; }
  Error Transpose(int64_t batch, int64_t rows, int64_t columns, int64_t element_bytes, const void* from, void* to,
                  Stream stream) override;

 private:
  struct Node {
    std::function<void()> work;
    Overlap overlap = Overlap::kNone;
    bool is_event = false;
  };
  using Work = std::vector<Node>;
  struct FakeStream {
    Work pending, captured;
    bool capturing = false;
    bool after_kernel = false;     // What comes next in its capture depends on kernels alone.
    bool invalid = false;          // A kernel of its capture overlaps with something else.
    FakeStream* origin = nullptr;  // Whose capture it is part of,
    size_t forked_at = 0;          // from this of its works on.
    int forks = 0;                 // Streams that are part of its capture.
  };
  struct Block {
    int64_t bytes;
    bool device;
  };
  // Anything but memory.
  template <typename T>
  Error Make(void** handle, T value);
  template <typename T>
  Error Destroy(void* handle);
  Error Allocate(void** data, int64_t bytes, bool device);
  Error Next();
  // What is no kernel.
  static void Append(Stream stream, std::function<void()> work);
  void LaunchRecord(Event event, Stream stream);
  bool Contains(const void* data, int64_t bytes, bool device) const;

  static thread_local Overlap next_launch_;
  std::atomic<int> calls_ = 0;
  int fail_at_ = -1;
  Error error_ = 0;
  std::atomic<Error> last_error_ = 0;
  bool lost_ = false;
  std::atomic<int> launched_graphs_ = 0;
  std::atomic<int64_t> clock_ms_ = 0;
  mutable std::mutex mutex_;  // Of what follows.
  std::vector<int64_t> uploads_;
  std::map<const uint8_t*, Block> memory_;
  std::map<void*, std::string> live_;  // What it is.
  int captured_nodes_ = 0, forks_ = 0;
  std::vector<Overlap> captured_overlaps_;
};

}  // namespace fuselage::runtime::cuda

#endif  // FUSELAGE_RUNTIME_CUDA_FAKE_API_H_
