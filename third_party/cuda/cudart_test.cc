// The toolkit that cuda_configure found is usable: its runtime links statically, and asks for devices without a driver.
#include <gtest/gtest.h>

#include "third_party/cuda/testing/no_gpu.h"

#if FUSELAGE_CUDA
#include <cuda_runtime_api.h>

TEST(CudaRuntime, FindsAGpu) {
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error != cudaSuccess) {
    EXPECT_TRUE(error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver) << cudaGetErrorString(error);
    FUSELAGE_NO_GPU("no CUDA device");
  }
  EXPECT_GE(devices, 1);
}

TEST(CudaRuntime, IsThatOfItsHeaders) {
  int version = 0;
  EXPECT_EQ(cudaRuntimeGetVersion(&version), cudaSuccess);
  EXPECT_EQ(version, CUDART_VERSION);
}
#else
TEST(CudaRuntime, NeedsAToolkit) { FUSELAGE_NO_GPU("no CUDA toolkit on this machine"); }
#endif
