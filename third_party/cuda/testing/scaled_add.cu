#include "third_party/cuda/testing/scaled_add.h"

#include <cuda_runtime.h>

namespace fuselage::cuda_testing {
namespace {

__global__ void Kernel(int n, float scale, const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = scale * x[i] + y[i];
}

}  // namespace

const char* ScaledAdd(int n, float scale, const float* x, float* y) {
  float* memory = nullptr;
  const size_t bytes = n * sizeof(float);
  cudaError_t error = cudaMalloc(&memory, 2 * bytes);
  if (error == cudaSuccess) error = cudaMemcpy(memory, x, bytes, cudaMemcpyHostToDevice);
  if (error == cudaSuccess) error = cudaMemcpy(memory + n, y, bytes, cudaMemcpyHostToDevice);
  if (error == cudaSuccess) {
    Kernel<<<(n + 255) / 256, 256>>>(n, scale, memory, memory + n);
    error = cudaGetLastError();
  }
  if (error == cudaSuccess) error = cudaMemcpy(y, memory + n, bytes, cudaMemcpyDeviceToHost);
  cudaFree(memory);
  return error == cudaSuccess ? "" : cudaGetErrorString(error);
}

}  // namespace fuselage::cuda_testing
