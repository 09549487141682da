#include "runtime/cuda/cudart.h"

#include <cuda_runtime.h>

#include "kernels/cuda/launch.h"
#include "runtime/cuda/transpose.h"

namespace fuselage::runtime::cuda {
namespace {

template <typename T>
cudaError_t TransposeAs(int64_t batch, int64_t rows, int64_t columns, const void* from, void* to, cudaStream_t stream) {
  using Kernel = TransposeTiles<T>;
  const int64_t blocks = Kernel::Blocks(batch, rows, columns);
  if (blocks > INT32_MAX) return cudaErrorInvalidConfiguration;
  fuselage::cuda::Launch<Kernel>({static_cast<int>(blocks), 1, 1}, Kernel::kSharedBytes,
                                 {rows, columns, static_cast<const T*>(from), static_cast<T*>(to)}, stream);
  return cudaGetLastError();
}

cudaStream_t AsStream(Stream stream) { return static_cast<cudaStream_t>(stream); }
cudaEvent_t AsEvent(Event event) { return static_cast<cudaEvent_t>(event); }

class Cudart final : public Api {
 public:
  std::string ErrorString(Error error) override { return cudaGetErrorString(static_cast<cudaError_t>(error)); }
  Error GetLastError() override { return cudaGetLastError(); }

  Error DriverVersion(int* version) override { return cudaDriverGetVersion(version); }
  Error GetDeviceCount(int* count) override { return cudaGetDeviceCount(count); }
  Error GetProperties(int device, DeviceProperties* properties) override {
    cudaDeviceProp found;
    const cudaError_t error = cudaGetDeviceProperties(&found, device);
    if (error == cudaSuccess) {
      *properties = {found.name, found.major, found.minor, static_cast<int64_t>(found.totalGlobalMem)};
    }
    return error;
  }
  Error SetDevice(int device) override { return cudaSetDevice(device); }
  Error DeviceSynchronize() override { return cudaDeviceSynchronize(); }

  Error Malloc(void** data, int64_t bytes) override { return cudaMalloc(data, bytes); }
  Error Free(void* data) override { return cudaFree(data); }
  Error MallocHost(void** data, int64_t bytes) override { return cudaMallocHost(data, bytes); }
  Error FreeHost(void* data) override { return cudaFreeHost(data); }
  Error MemsetAsync(void* data, int value, int64_t bytes, Stream stream) override {
    return cudaMemsetAsync(data, value, bytes, AsStream(stream));
  }
  Error MemcpyAsync(void* to, const void* from, int64_t bytes, Direction direction, Stream stream) override {
    const cudaMemcpyKind kind = direction == Direction::kHostToDevice   ? cudaMemcpyHostToDevice
                                : direction == Direction::kDeviceToHost ? cudaMemcpyDeviceToHost
                                                                        : cudaMemcpyDeviceToDevice;
    return cudaMemcpyAsync(to, from, bytes, kind, AsStream(stream));
  }

  Error StreamCreate(Stream* stream) override {
    cudaStream_t made = nullptr;
    const cudaError_t error = cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
    *stream = made;
    return error;
  }
  Error StreamDestroy(Stream stream) override { return cudaStreamDestroy(AsStream(stream)); }
  Error StreamSynchronize(Stream stream) override { return cudaStreamSynchronize(AsStream(stream)); }
  Error BeginCapture(Stream stream) override {
    return cudaStreamBeginCapture(AsStream(stream), cudaStreamCaptureModeThreadLocal);
  }
  Error EndCapture(Stream stream, Graph* graph) override {
    cudaGraph_t made = nullptr;
    const cudaError_t error = cudaStreamEndCapture(AsStream(stream), &made);
    *graph = made;
    return error;
  }
  Error GraphDestroy(Graph graph) override { return cudaGraphDestroy(static_cast<cudaGraph_t>(graph)); }
  Error GraphInstantiate(Graph graph, GraphExec* exec) override {
    cudaGraphExec_t made = nullptr;
    const cudaError_t error = cudaGraphInstantiateWithFlags(&made, static_cast<cudaGraph_t>(graph), 0);
    *exec = made;
    return error;
  }
  Error GraphExecDestroy(GraphExec exec) override { return cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(exec)); }
  Error GraphLaunch(GraphExec exec, Stream stream) override {
    return cudaGraphLaunch(static_cast<cudaGraphExec_t>(exec), AsStream(stream));
  }

  Error EventCreate(Event* event) override {
    cudaEvent_t made = nullptr;
    const cudaError_t error = cudaEventCreate(&made);
    *event = made;
    return error;
  }
  Error EventDestroy(Event event) override { return cudaEventDestroy(AsEvent(event)); }
  Error EventRecord(Event event, Stream stream) override { return cudaEventRecord(AsEvent(event), AsStream(stream)); }
  Error StreamWaitEvent(Stream stream, Event event) override {
    return cudaStreamWaitEvent(AsStream(stream), AsEvent(event), 0);
  }
  Error EventRecordInGraph(Event event, Stream stream) override {
    return cudaEventRecordWithFlags(AsEvent(event), AsStream(stream), cudaEventRecordExternal);
  }
  Error EventElapsedMs(float* ms, Event start, Event end) override {
    return cudaEventElapsedTime(ms, AsEvent(start), AsEvent(end));
  }

  void LetNextLaunch(Overlap overlap) override { fuselage::cuda::NextLaunch() = overlap; }

  Error Transpose(int64_t batch, int64_t rows, int64_t columns, int64_t element_bytes, const void* from, void* to,
                  Stream stream) override {
    switch (element_bytes) {
      case 1: return TransposeAs<uint8_t>(batch, rows, columns, from, to, AsStream(stream));
      case 2: return TransposeAs<uint16_t>(batch, rows, columns, from, to, AsStream(stream));
      case 4: return TransposeAs<uint32_t>(batch, rows, columns, from, to, AsStream(stream));
      case 8: return TransposeAs<uint64_t>(batch, rows, columns, from, to, AsStream(stream));
      default: return cudaErrorInvalidValue;
    }
  }
};

}  // namespace

std::unique_ptr<Api> MakeCudart() { return std::make_unique<Cudart>(); }

}  // namespace fuselage::runtime::cuda
