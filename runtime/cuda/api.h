// Api: what the runtime asks of CUDA, one function each, with CUDA's own error codes. An interface, so that everything
// above it builds without the toolkit and is tested on a fake device (fake_api.h); cudart.h has the real one.
#ifndef FUSELAGE_RUNTIME_CUDA_API_H_
#define FUSELAGE_RUNTIME_CUDA_API_H_

#include <cstdint>
#include <string>

#include "kernels/cuda/overlap.h"

namespace fuselage::runtime::cuda {

// cudaError_t; 0 is success.
using Error = int;

// cudaStream_t, cudaEvent_t, cudaGraph_t, cudaGraphExec_t: CUDA's handles are pointers.
using Stream = void*;
using Event = void*;
using Graph = void*;
using GraphExec = void*;

using ::fuselage::cuda::Overlap;

enum class Direction { kHostToDevice, kDeviceToHost, kDeviceToDevice };

struct DeviceProperties {
  std::string name;
  int major = 0, minor = 0;  // Compute capability.
  int64_t memory_bytes = 0;
};

class Api {
 public:
  virtual ~Api() = default;

  virtual std::string ErrorString(Error error) = 0;
  // Also of launches, which return nothing themselves; forgets it.
  virtual Error GetLastError() = 0;

  virtual Error DriverVersion(int* version) = 0;  // 13000: 13.0. 0: no driver.
  virtual Error GetDeviceCount(int* count) = 0;
  virtual Error GetProperties(int device, DeviceProperties* properties) = 0;
  virtual Error SetDevice(int device) = 0;
  virtual Error DeviceSynchronize() = 0;

  virtual Error Malloc(void** data, int64_t bytes) = 0;
  virtual Error Free(void* data) = 0;
  virtual Error MallocHost(void** data, int64_t bytes) = 0;  // Pinned.
  virtual Error FreeHost(void* data) = 0;
  virtual Error MemsetAsync(void* data, int value, int64_t bytes, Stream stream) = 0;
  virtual Error MemcpyAsync(void* to, const void* from, int64_t bytes, Direction direction, Stream stream) = 0;

  virtual Error StreamCreate(Stream* stream) = 0;  // Does not wait for the legacy default stream.
  virtual Error StreamDestroy(Stream stream) = 0;
  virtual Error StreamSynchronize(Stream stream) = 0;
  virtual Error BeginCapture(Stream stream) = 0;
  virtual Error EndCapture(Stream stream, Graph* graph) = 0;  // Ends it also where it returns an error.
  virtual Error GraphDestroy(Graph graph) = 0;
  virtual Error GraphInstantiate(Graph graph, GraphExec* exec) = 0;
  virtual Error GraphExecDestroy(GraphExec exec) = 0;
  virtual Error GraphLaunch(GraphExec exec, Stream stream) = 0;

  virtual Error EventCreate(Event* event) = 0;
  virtual Error EventDestroy(Event event) = 0;
  virtual Error EventRecord(Event event, Stream stream) = 0;
  // What follows on the stream waits for the event. During the capture of another stream, on which the event was
  // recorded, this one becomes part of the capture, until that one waits for an event of this one.
  virtual Error StreamWaitEvent(Stream stream, Event event) = 0;
  // During a capture: a node of the graph, so that each launch records the event.
  virtual Error EventRecordInGraph(Event event, Stream stream) = 0;
  virtual Error EventElapsedMs(float* ms, Event start, Event end) = 0;

  // Of this thread's next launch of a kernel that is not of a library; one that is beside another makes those that
  // follow it kNext. What comes before, in its stream or in its capture, must be kernels.
  virtual void LetNextLaunch(Overlap overlap) = 0;

  // A kernel of the runtime's own: for each of `batch` matrices to[c][r] = from[r][c], elements of 1, 2, 4 or 8 bytes.
  virtual Error Transpose(int64_t batch, int64_t rows, int64_t columns, int64_t element_bytes, const void* from,
                          void* to, Stream stream) = 0;
};

}  // namespace fuselage::runtime::cuda

#endif  // FUSELAGE_RUNTIME_CUDA_API_H_
