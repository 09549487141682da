// The emulation's products are tested with the kernels that use them; here cuBLASLt, where there is a device.
#include "kernels/cuda/int8_gemm.h"

#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cuda/device.h"
#include "third_party/cuda/testing/no_gpu.h"

namespace fuselage::cuda {
namespace {

TEST(Int8GemmTest, MultipliesOrSaysWhyNot) {
  const Int8Gemm::Size size = {96, 64, 128};
  const auto gemm = Int8Gemm::Create(size);
  if (!CurrentDevice().ok()) {
    EXPECT_EQ(gemm.status().code(), absl::StatusCode::kUnavailable) << gemm.status();
    FUSELAGE_NO_GPU("no CUDA device");
  }
  if (absl::IsUnavailable(gemm.status())) GTEST_SKIP() << gemm.status();  // No library.
  ASSERT_TRUE(gemm.ok()) << gemm.status();
  std::mt19937 random(1);
  std::vector<int8_t> x(size.rows * size.depth), w(size.columns * size.depth);
  for (int8_t& code : x) code = static_cast<int8_t>(random());
  for (int8_t& code : w) code = static_cast<int8_t>(random());
  const auto device_x = DeviceBuffer::Upload(x.data(), x.size(), "x"),
             device_w = DeviceBuffer::Upload(w.data(), w.size(), "w"),
             device_y = DeviceBuffer::Allocate(4 * size.rows * size.columns, "y"),
             workspace = DeviceBuffer::Allocate((*gemm)->workspace_bytes() + 1, "the workspace");
  ASSERT_TRUE(device_x.ok() && device_w.ok() && device_y.ok() && workspace.ok());
  ASSERT_TRUE((*gemm)
                  ->Run(static_cast<int8_t*>(device_x->data()), static_cast<int8_t*>(device_w->data()),
                        static_cast<int32_t*>(device_y->data()), workspace->data(), nullptr)
                  .ok());
  std::vector<int32_t> y(size.rows * size.columns);
  ASSERT_EQ(cudaMemcpy(y.data(), device_y->data(), device_y->bytes(), cudaMemcpyDeviceToHost), cudaSuccess);
  for (int64_t row = 0; row < size.rows; ++row) {
    for (int64_t n = 0; n < size.columns; ++n) {
      int32_t sum = 0;
      for (int64_t k = 0; k < size.depth; ++k) sum += x[row * size.depth + k] * w[n * size.depth + k];
      ASSERT_EQ(y[row * size.columns + n], sum) << row << " " << n;
    }
  }
}

}  // namespace
}  // namespace fuselage::cuda
