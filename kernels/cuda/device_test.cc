// With a toolkit and without a device: errors that say what was asked for. With a device: bytes come back.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/cuda/testing/no_gpu.h"

#if FUSELAGE_CUDA
#include <vector>

#include "kernels/cuda/device.h"

namespace fuselage::cuda {
namespace {

using ::testing::HasSubstr;

TEST(DeviceTest, BuffersHoldBytesOrSayWhatWasAskedFor) {
  const std::vector<uint8_t> bytes = {1, 2, 3, 250};
  const auto device = CurrentDevice();
  const auto buffer = DeviceBuffer::Upload(bytes.data(), bytes.size(), "a test");
  ASSERT_EQ(device.ok(), buffer.ok()) << device.status() << buffer.status();
  if (!device.ok()) {
    EXPECT_EQ(buffer.status().code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(buffer.status().message(), HasSubstr("4 bytes for a test"));
    FUSELAGE_NO_GPU("no CUDA device");
  }
  EXPECT_GE(device->sm, 50);
  std::vector<uint8_t> back(bytes.size());
  ASSERT_EQ(cudaMemcpy(back.data(), buffer->data(), buffer->bytes(), cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(back, bytes);
}

TEST(DeviceTest, ErrorsHaveCodes) {
  EXPECT_TRUE(ToStatus(cudaSuccess, "x").ok());
  EXPECT_EQ(ToStatus(cudaErrorMemoryAllocation, "x").code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ToStatus(cudaErrorLaunchFailure, "x").code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(ToStatus(cudaErrorMemoryAllocation, "x").message(), HasSubstr("x: out of memory"));
}

}  // namespace
}  // namespace fuselage::cuda
#else
TEST(DeviceTest, NeedsAToolkit) { FUSELAGE_NO_GPU("no CUDA toolkit on this machine"); }
#endif
