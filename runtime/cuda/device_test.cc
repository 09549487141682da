#include "runtime/cuda/device.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/base/status.h"
#include "ir/testing/matchers.h"
#include "runtime/cuda/fake_api.h"

namespace fuselage::runtime::cuda {
namespace {

using ::fuselage::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Device, SaysWhatItIs) {
  FakeApi api;
  ASSERT_OK_AND_ASSIGN(auto device, Device::Open(&api));
  EXPECT_EQ(device->name(), "Fake GPU");
  EXPECT_EQ(device->arch(), "sm_90");
  EXPECT_EQ(device->driver(), "13.0");
}

TEST(Device, SaysWhatIsMissing) {
  const auto open = [](const std::function<void(FakeApi&)>& change) {
    FakeApi api;
    change(api);
    return Device::Open(&api).status();
  };
  const auto missing = [](absl::string_view text) {
    return StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(std::string(text)));
  };
  EXPECT_THAT(open([](FakeApi& api) { api.driver_version = 0; }), missing("no NVIDIA driver"));
  EXPECT_THAT(open([](FakeApi& api) {
                api.driver_version = 12040;
                api.device_count_error = 35;
              }),
              missing("supports CUDA 12.4 only"));
  EXPECT_THAT(open([](FakeApi& api) { api.device_count_error = 100; }), missing("no CUDA device"));
  EXPECT_THAT(open([](FakeApi& api) { api.device_count = 0; }), missing("no CUDA device"));
  EXPECT_THAT(open([](FakeApi& api) {
                api.properties = {"Tesla T4", 7, 5, 1 << 30};
              }),
              missing("Tesla T4 is sm_75, the kernels want sm_80 or later"));
  EXPECT_THAT(open([](FakeApi& api) { api.device_count_error = 999; }),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("cudaGetDeviceCount")));
}

TEST(Device, ErrorsNameTheCallAndWhatItMeans) {
  FakeApi api;
  ASSERT_OK_AND_ASSIGN(auto device, Device::Open(&api));
  EXPECT_THAT(
      device->Allocate(int64_t{44700000000}, "the arena"),
      StatusIs(absl::StatusCode::kResourceExhausted, "cudaMalloc of 44700.0 MB for the arena: out of memory (2)"));
  for (const auto& [error, code] :
       {std::make_pair(209, absl::StatusCode::kUnimplemented), std::make_pair(719, absl::StatusCode::kDataLoss),
        std::make_pair(1, absl::StatusCode::kInternal)}) {
    api.FailAt(0, error, false);
    EXPECT_THAT(device->Synchronize(), StatusIs(code, HasSubstr("cudaDeviceSynchronize: fake error (")));
  }
}

TEST(Device, NothingIsNoCall) {
  FakeApi api;
  ASSERT_OK_AND_ASSIGN(auto device, Device::Open(&api));
  api.FailAt(0, 1, true);
  ASSERT_OK_AND_ASSIGN(const Handle nothing, device->Allocate(0, "nothing"));
  EXPECT_EQ(nothing, nullptr);
  EXPECT_OK(device->Copy(nullptr, nullptr, 0, Direction::kHostToDevice, nullptr));
}

// No stream has to wait for it.
TEST(Device, WhatIsUploadedIsCompleteAndThereOnce) {
  FakeApi api;
  ASSERT_OK_AND_ASSIGN(auto device, Device::Open(&api));
  std::string weights = "weights";
  {
    ASSERT_OK_AND_ASSIGN(const auto memory, device->Upload(weights.data(), 7, "a test"));
    EXPECT_EQ(std::string(static_cast<const char*>(memory.get()), 7), "weights");
    weights += "!";
    ASSERT_OK_AND_ASSIGN(const auto again, device->Upload(weights.data(), 7, "a test"));
    EXPECT_EQ(again, memory);
    EXPECT_EQ(api.device_bytes(), 7);
  }
  EXPECT_EQ(api.live_handles(), 0);
}

TEST(Device, CaptureEndsWhereItsWorkFails) {
  FakeApi api;
  ASSERT_OK_AND_ASSIGN(auto device, Device::Open(&api));
  ASSERT_OK_AND_ASSIGN(const Handle stream, device->NewStream());
  EXPECT_THAT(device->Capture(stream.get(), [] { return absl::UnimplementedError("this step"); }),
              StatusIs(absl::StatusCode::kUnimplemented, "this step"));
  int runs = 0;
  ASSERT_OK_AND_ASSIGN(const Handle graph, device->Capture(stream.get(), [&] {
    FakeApi::Launch(stream.get(), [&] { ++runs; });
    return absl::OkStatus();
  }));
  EXPECT_EQ(runs, 0);
  EXPECT_OK(device->Launch(graph.get(), stream.get()));
  EXPECT_OK(device->Launch(graph.get(), stream.get()));
  EXPECT_EQ(runs, 0);
  EXPECT_OK(device->Synchronize(stream.get()));
  EXPECT_EQ(runs, 2);
}

// The fake refuses what a device might: launches that overlap with anything but kernels before them.
TEST(Device, LaunchesOverlapWithKernelsAlone) {
  FakeApi api;
  ASSERT_OK_AND_ASSIGN(auto device, Device::Open(&api));
  ASSERT_OK_AND_ASSIGN(const Handle stream, device->NewStream());
  ASSERT_OK_AND_ASSIGN(const Handle beside, device->NewStream());
  ASSERT_OK_AND_ASSIGN(const Handle event, device->NewEvent());
  ASSERT_OK_AND_ASSIGN(const Handle memory, device->Allocate(8, "a copy"));
  const auto capture = [&](auto between) {
    return device
        ->Capture(stream.get(),
                  [&] {
                    FakeApi::Launch(stream.get(), [] {});
                    const absl::Status status = between();
                    device->LetNextLaunch(Overlap::kNext);
                    FakeApi::Launch(stream.get(), [] {});
                    device->LetNextLaunch(Overlap::kNone);
                    return status;
                  })
        .status();
  };
  const auto refused = StatusIs(absl::StatusCode::kInternal, HasSubstr("(901)"));
  EXPECT_OK(capture([] { return absl::OkStatus(); }));
  EXPECT_THAT(capture([&] { return device->Fill(memory.get(), 0, 8, stream.get()); }), refused);
  EXPECT_THAT(capture([&] { return device->RecordInGraph(event.get(), stream.get()); }), refused);
  const auto fork = [&](auto in_branch) {
    return capture([&]() -> absl::Status {
      RETURN_IF_ERROR(device->Record(event.get(), stream.get()));
      RETURN_IF_ERROR(device->Wait(beside.get(), event.get()));
      RETURN_IF_ERROR(in_branch());
      RETURN_IF_ERROR(device->Record(event.get(), beside.get()));
      return device->Wait(stream.get(), event.get());
    });
  };
  EXPECT_OK(fork([&] {
    device->LetNextLaunch(Overlap::kNext);
    FakeApi::Launch(beside.get(), [] {});
    device->LetNextLaunch(Overlap::kNone);
    return absl::OkStatus();
  }));
  EXPECT_THAT(fork([&] { return device->Fill(memory.get(), 0, 8, beside.get()); }), refused);
}

}  // namespace
}  // namespace fuselage::runtime::cuda
