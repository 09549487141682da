// cuda_library's object links into a C++ test, and its arithmetic is the host's: no fused multiply-add.
#include "third_party/cuda/testing/scaled_add.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "third_party/cuda/testing/no_gpu.h"

#ifdef FUSELAGE_NO_CUDA
TEST(CudaLibrary, NeedsAToolkit) { FUSELAGE_NO_GPU("no CUDA toolkit on this machine"); }
#else
#include <cuda_runtime_api.h>

TEST(CudaLibrary, RoundsTheProductAndTheSum) {
  // In double: 1 + 2^-11 + 2^-24, less 1. A fused multiply-add keeps the last bit, rounding the product drops it.
  std::vector<float> x(1000, 1 + 0x1p-12f), y(1000, -1);
  const std::string error = fuselage::cuda_testing::ScaledAdd(1000, 1 + 0x1p-12f, x.data(), y.data());
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    EXPECT_NE(error, "");
    FUSELAGE_NO_GPU("no CUDA device");
  }
  EXPECT_EQ(error, "");
  for (float value : y) ASSERT_EQ(value, 0x1p-11f);
}
#endif
