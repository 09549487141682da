#include "kernels/attention/cuda/attention_cuda.h"

#include <cstring>
#include <limits>

#include "gtest/gtest.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/attention_cases.h"
#include "kernels/core/testing/testing.h"
#include "kernels/cuda/testing/testing.h"

namespace fuselage::attention::cuda {
namespace {

using ::fuselage::cuda::ExpectBytesOf;
using AttentionCuda = ::fuselage::cuda::CudaTest;

TEST_F(AttentionCuda, HasTheBytesOfTheCpu) {
  for (const Case& c : Cases()) ExpectBytesOf(attention::Register, RegisterCuda, CallOf(c));
}

TEST_F(AttentionCuda, WideValues) {
  ExpectBytesOf(attention::Register, RegisterCuda, CallOf({{1, 2, 3, 4}, {1, 2, 5, 4}, {1, 2, 5, 300}, {}}));
}

// A key that a query does not look at weighs 0 up to the end of the block of queries that the CPU takes together.
TEST_F(AttentionCuda, WhatIsNotFiniteIsMultipliedAsOnTheCpu) {
  OpCall call = CallOf({{1, 1, 200, 8}, {1, 1, 200, 8}, {1, 1, 200, 8}, {}, false, true});
  call.operands[2]->data<float>()[100 * 8 + 3] = std::numeric_limits<float>::infinity();
  const auto desc = kernels::DescOf(call, Layout::kRowMajor, Layout::kRowMajor);
  const auto kernel = ::fuselage::cuda::CreateRegistered(RegisterCuda, desc);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const auto found = ::fuselage::cuda::RunCudaKernel(
      **kernel, desc, {&*call.operands[0], &*call.operands[1], &*call.operands[2], nullptr});
  ASSERT_TRUE(found.ok()) << found.status();
  for (int64_t row = 0; row < 200; ++row) {
    float y;
    std::memcpy(&y, (*found)[0].data() + 4 * (row * 8 + 3), sizeof(y));
    const bool weighs_nothing = row >= kBlockRows && row < 100;
    EXPECT_EQ(y != y, weighs_nothing) << row;
    EXPECT_EQ(y == std::numeric_limits<float>::infinity(), row >= 100) << row;
  }
}

TEST_F(AttentionCuda, IsRegisteredAsOnTheCpu) {
  ::fuselage::cuda::ExpectSameEntries(attention::Register, RegisterCuda);
}

}  // namespace
}  // namespace fuselage::attention::cuda
