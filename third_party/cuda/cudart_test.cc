// The toolkit that cuda_configure found is usable: its runtime links statically, and asks for devices without a driver.
#include <gtest/gtest.h>

#if FUSELAGE_CUDA
#include <cuda_runtime_api.h>

TEST(CudaRuntime, AnswersWithOrWithoutAGpu) {
  int devices = -1;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error == cudaSuccess) {
    EXPECT_GE(devices, 0);
  } else {
    EXPECT_TRUE(error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver) << cudaGetErrorString(error);
    printf("SKIPPED: no CUDA device (%s)\n", cudaGetErrorString(error));
  }
  int version = 0;
  EXPECT_EQ(cudaRuntimeGetVersion(&version), cudaSuccess);
  EXPECT_EQ(version, CUDART_VERSION);
}
#else
TEST(CudaRuntime, StubsWithoutAToolkit) { GTEST_SKIP() << "no CUDA toolkit on this machine"; }
#endif
