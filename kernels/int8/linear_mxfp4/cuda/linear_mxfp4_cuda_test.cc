#include "kernels/int8/linear_mxfp4/cuda/linear_mxfp4_cuda.h"

#include "gtest/gtest.h"
#include "kernels/cuda/testing/testing.h"
#include "kernels/int8/linear_mxfp4/linear_mxfp4.h"
#include "kernels/int8/linear_mxfp4/linear_mxfp4_cases.h"

namespace fuselage::int8::linear_mxfp4::cuda {
namespace {

using ::fuselage::cuda::ExpectBytesOf;
using LinearMxfp4Cuda = ::fuselage::cuda::CudaTest;

TEST_F(LinearMxfp4Cuda, HasTheBytesOfTheCpu) {
  for (const OpCall& call : Calls()) ExpectBytesOf(linear_mxfp4::Register, RegisterCuda, call);
}

// Every weight at either end, times the codes' ends, by the least and the greatest scales.
TEST_F(LinearMxfp4Cuda, EndsAreExact) {
  for (const uint8_t weight : {7, 15}) {
    for (const uint8_t scale : {2, 254}) {
      OpCall call = Call({17, 64}, 9, "none");
      ForEach<int8_t>(*call.operands[0], [](int8_t& x) { x = x < 0 ? -128 : 127; });
      ForEach<uint8_t>(*call.operands[1], [&](uint8_t& code) { code = weight; });
      ForEach<uint8_t>(*call.operands[2], [&](uint8_t& code) { code = scale; });
      ForEach<float>(*call.operands[3], [&](float& x) { x = scale == 2 ? 1e30f : 1e-30f; });
      ExpectBytesOf(linear_mxfp4::Register, RegisterCuda, call);
    }
  }
}

TEST_F(LinearMxfp4Cuda, IsRegisteredAndDeclinesAsOnTheCpu) {
  ::fuselage::cuda::ExpectSameEntries(linear_mxfp4::Register, RegisterCuda);
  const OpCall call = Call({2, 32}, 4, "clamp(min=-0.5, max=1.5)");
  const auto desc = kernels::DescOf(call, Layout::kRowMajor, Layout::kRowMajor);
  EXPECT_EQ(::fuselage::cuda::CreateRegistered(RegisterCuda, desc).status(), linear_mxfp4::Create(desc).status());
}

}  // namespace
}  // namespace fuselage::int8::linear_mxfp4::cuda
