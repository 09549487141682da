#include "kernels/int8/avg_pool2d/cuda/avg_pool2d_cuda.h"

#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"
#include "kernels/cuda/testing/testing.h"
#include "kernels/int8/avg_pool2d/avg_pool2d.h"
#include "kernels/int8/avg_pool2d/avg_pool2d_cases.h"

namespace fuselage::int8::avg_pool2d::cuda {
namespace {

using ::fuselage::cuda::ExpectBytesOf;
using AvgPool2dCuda = ::fuselage::cuda::CudaTest;
using ::fuselage::cuda::CreateRegistered;

TEST_F(AvgPool2dCuda, HasTheBytesOfTheCpu) {
  for (const KernelDesc& desc : Descs()) {
    ExpectBytesOf(avg_pool2d::Create, RegisterCuda, desc, 7);
    if (HasFatalFailure()) return;
  }
}

TEST_F(AvgPool2dCuda, AnyNumberOfChannels) {
  for (int64_t channels = 1; channels <= 70; ++channels) {
    const Case c = {{2, channels, 3, 4}, {2, channels, 2, 3}, {2, 2}, {1, 1}, {0, 0, 0, 0}};
    ExpectBytesOf(avg_pool2d::Create, RegisterCuda, Desc(c, DType::kU8, 9, DType::kI8, 99, false));
    if (HasFatalFailure()) return;
  }
}

// All numbers of threads that share a window.
TEST_F(AvgPool2dCuda, AnyWindow) {
  for (const int64_t batch : {0, 1, 9}) {
    for (const int64_t size : {1, 2, 3, 4, 5, 6, 8, 11, 16}) {
      const Case c = {{batch, 40, size, size}, {batch, 40, 1, 1}, {}, {}, {}, false, /*global=*/true};
      ExpectBytesOf(avg_pool2d::Create, RegisterCuda, Desc(c, DType::kI8, 77, DType::kU8, 3, false));
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(AvgPool2dCuda, IsRegisteredAndDeclinesAsOnTheCpu) {
  ::fuselage::cuda::ExpectSameEntries(avg_pool2d::Register, RegisterCuda);
  const Case large = {{1, 1, 3000, 3000}, {1, 1, 1, 1}, {}, {}, {}, false, /*global=*/true};
  const KernelDesc desc = Desc(large, DType::kU8, 0, DType::kU8, 0, false);
  EXPECT_EQ(CreateRegistered(RegisterCuda, desc).status(), avg_pool2d::Create(desc).status());
}

}  // namespace
}  // namespace fuselage::int8::avg_pool2d::cuda
