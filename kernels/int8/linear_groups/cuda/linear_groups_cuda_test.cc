#include "kernels/int8/linear_groups/cuda/linear_groups_cuda.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cuda/testing/testing.h"
#include "kernels/int8/linear_groups/linear_groups.h"
#include "kernels/int8/linear_groups/linear_groups_cases.h"

namespace fuselage::int8::linear_groups::cuda {
namespace {

using ::fuselage::cuda::ExpectBytesOf;
using LinearGroupsCuda = ::fuselage::cuda::CudaTest;

TEST_F(LinearGroupsCuda, HasTheBytesOfTheCpu) {
  for (const OpCall& call : Calls()) ExpectBytesOf(linear_groups::Register, RegisterCuda, call);
}

TEST_F(LinearGroupsCuda, Int4HasTheBytesOfTheCpu) {
  for (const int64_t depth : {1, 32, 33, 100, 256}) {
    for (const char* activation : {"none", "relu", "silu"}) {
      for (const int64_t group : {32, 64, 128}) {
        for (const int bits : {4, 5}) {
          ExpectBytesOf(linear_groups::Register, RegisterCuda, IntegerCall({19, depth}, 37, bits, group, activation));
        }
      }
    }
  }
}

// Every weight at either end, times the codes' ends, by the least and the greatest scales.
TEST_F(LinearGroupsCuda, EndsAreExact) {
  for (const uint8_t weight : {7, 15}) {
    for (const uint8_t scale : {2, 254}) {
      OpCall call = Call({17, 64}, 9, "none");
      ForEach<int8_t>(*call.operands[0], [](int8_t& x) { x = x < 0 ? -128 : 127; });
      ForEach<uint8_t>(*call.operands[1], [&](uint8_t& code) { code = weight; });
      ForEach<uint8_t>(*call.operands[2], [&](uint8_t& code) { code = scale; });
      ForEach<float>(*call.operands[3], [&](float& x) { x = scale == 2 ? 1e30f : 1e-30f; });
      ExpectBytesOf(linear_groups::Register, RegisterCuda, call);
    }
  }
}

TEST_F(LinearGroupsCuda, IsRegisteredAndDeclinesAsOnTheCpu) {
  ::fuselage::cuda::ExpectSameEntries(linear_groups::Register, RegisterCuda);
  const OpCall call = Call({2, 32}, 4, "clamp(min=-0.5, max=1.5)");
  const auto desc = kernels::DescOf(call, Layout::kRowMajor, Layout::kRowMajor);
  EXPECT_EQ(::fuselage::cuda::CreateRegistered(RegisterCuda, desc).status(), linear_groups::Create(desc).status());
  const OpCall integers = IntegerCall({2, 32}, 4, 8, 32);
  const auto bytes = kernels::DescOf(integers, Layout::kRowMajor, Layout::kRowMajor);
  EXPECT_THAT(std::string(::fuselage::cuda::CreateRegistered(RegisterCuda, bytes).status().message()),
              ::testing::HasSubstr("wanted MXFP4, or codes of four bits"));
}

}  // namespace
}  // namespace fuselage::int8::linear_groups::cuda
