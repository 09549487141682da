#include "kernels/cuda/shared_uploads.h"

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cuda/device_buffer.h"
#include "kernels/cuda/testing/emulated.h"

namespace fuselage::cuda {
namespace {

absl::StatusOr<DeviceBuffer> Upload(const std::string& bytes) {
  return DeviceBuffer::Upload(bytes.data(), static_cast<int64_t>(bytes.size()), "a test");
}

TEST(SharedUploads, EqualBytesAreOnceOnTheDeviceAsLongAsSomebodyHasThem) {
  const std::string weights(1000, 'w');
  {
    auto first = Upload(weights);
    DeviceBuffer second;
    {
      const auto third = Upload(weights);
      second = *Upload(weights);
      EXPECT_EQ(third->data(), first->data());
    }
    EXPECT_EQ(second.data(), first->data());
    EXPECT_EQ(second.bytes(), 1000);
    EXPECT_EQ(DeviceBytes(), 1000);
    std::string other = weights;
    other.back() = 'x';
    const auto of_same_size = Upload(other), shorter = Upload(weights.substr(1));
    EXPECT_EQ(DeviceBytes(), 1000 + 1000 + 999);
    first = absl::CancelledError("gone");
    EXPECT_EQ(std::string(static_cast<const char*>(second.data()), 1000), weights) << "of the one who stays";
  }
  EXPECT_EQ(DeviceBytes(), 0);
  EXPECT_EQ(std::string(static_cast<const char*>(Upload(weights)->data()), 1), "w") << "again";
}

TEST(SharedUploads, WhatKernelsWriteIsTheirOwn) {
  const auto scratch = DeviceBuffer::Allocate(64, "a test"), other = DeviceBuffer::Allocate(64, "a test");
  EXPECT_NE(scratch->data(), other->data());
}

TEST(SharedUploads, OneThreadUploadsAndTheOthersFindItComplete) {
  SharedUploads uploads;
  for (int turn = 0; turn < 20; ++turn) {
    const std::string weights = "weights " + std::to_string(turn);
    int made = 0;
    std::vector<std::string> found(4);
    std::vector<SharedUploads::Memory> kept(found.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < found.size(); ++i) {
      threads.emplace_back([&, i] {
        kept[i] = *uploads.Get(weights, [&]() -> absl::StatusOr<SharedUploads::Memory> {
          ++made;
          auto memory = std::make_shared<std::string>();
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
          *memory = weights;
          return memory;
        });
        found[i] = *static_cast<const std::string*>(kept[i].get());
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(made, 1);
    EXPECT_EQ(found, std::vector<std::string>(4, weights));
  }
}

TEST(SharedUploads, WhoComesAfterAnErrorUploads) {
  SharedUploads uploads;
  EXPECT_EQ(uploads.Get("w", [] { return absl::ResourceExhaustedError("too little memory"); }).status().code(),
            absl::StatusCode::kResourceExhausted);
  const auto memory = std::make_shared<int>(1);
  EXPECT_EQ(*uploads.Get("w", [&] { return SharedUploads::Memory(memory); }), memory);
}

}  // namespace
}  // namespace fuselage::cuda
