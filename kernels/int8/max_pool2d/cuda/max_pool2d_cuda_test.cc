#include "kernels/int8/max_pool2d/cuda/max_pool2d_cuda.h"

#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"
#include "kernels/cuda/testing/testing.h"
#include "kernels/int8/max_pool2d/max_pool2d.h"
#include "kernels/int8/max_pool2d/max_pool2d_cases.h"

namespace fuselage::int8::max_pool2d::cuda {
namespace {

using ::fuselage::cuda::ExpectBytesOf;
using MaxPool2dCuda = ::fuselage::cuda::CudaTest;
using ::fuselage::cuda::CreateRegistered;

TEST_F(MaxPool2dCuda, HasTheBytesOfTheCpu) {
  for (const Case& c : kCases) {
    for (const DType dtype : {DType::kU8, DType::kI8}) {
      ExpectBytesOf(max_pool2d::Create, RegisterCuda, Desc(c, dtype), 7);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(MaxPool2dCuda, AnyNumberOfChannels) {
  for (int64_t channels = 1; channels <= 70; ++channels) {
    const Case c = {{2, channels, 3, 4}, {2, channels, 2, 3}, {2, 2}, {1, 1}, {0, 0, 0, 0}, {1, 1}};
    ExpectBytesOf(max_pool2d::Create, RegisterCuda, Desc(c, channels % 2 ? DType::kU8 : DType::kI8));
    if (HasFatalFailure()) return;
  }
}

TEST_F(MaxPool2dCuda, IsRegisteredAndDeclinesAsOnTheCpu) {
  ::fuselage::cuda::ExpectSameEntries(max_pool2d::Register, RegisterCuda);
  Case c = kCases[0];
  c.output[2] = 7;
  const KernelDesc wrong = Desc(c, DType::kU8);
  EXPECT_EQ(CreateRegistered(RegisterCuda, wrong).status(), max_pool2d::Create(wrong).status());
  KernelDesc halo = Desc(kCases[0], DType::kU8);
  halo.output_placement.halo = 1;
  EXPECT_EQ(CreateRegistered(RegisterCuda, halo).status().code(), absl::StatusCode::kUnimplemented);
  constexpr int64_t kLarge = int64_t{1} << 30;
  const Case large = {{1, 1, kLarge, 1}, {1, 1, kLarge, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}};
  EXPECT_EQ(CreateRegistered(RegisterCuda, Desc(large, DType::kU8)).status().code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace fuselage::int8::max_pool2d::cuda
