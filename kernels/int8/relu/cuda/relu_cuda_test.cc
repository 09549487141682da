#include "kernels/int8/relu/cuda/relu_cuda.h"

#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"
#include "kernels/cuda/testing/testing.h"
#include "kernels/int8/relu/relu.h"
#include "kernels/int8/relu/relu_cases.h"

namespace fuselage::int8::relu::cuda {
namespace {

using ::fuselage::cuda::ExpectBytesOf;
using ReluCuda = ::fuselage::cuda::CudaTest;

// Each case on every code, and on numbers of codes that leave tails.
TEST_F(ReluCuda, HasTheBytesOfTheCpu) {
  Tensor x(Codes(DType::kU8, {256}, 1, 0));
  for (int i = 0; i < 256; ++i) x.Set(i, i);
  for (const KernelDesc& desc : Descs()) {
    x.set_type(desc.input(0));
    ExpectBytesOf(relu::Create, ::fuselage::cuda::CreateRegistered(RegisterCuda, desc), desc, {&x});
    if (HasFatalFailure()) return;
  }
}

TEST_F(ReluCuda, AnySize) {
  for (const float scale : {0.5f, 0.3f}) {
    for (const int64_t n : {0, 1, 3, 4, 15, 16, 17, 31, 1000, 8192, 100001}) {
      ExpectBytesOf(relu::Create, RegisterCuda, Desc(Codes(DType::kI8, {n}, 0.5f, 3), Codes(DType::kI8, {n}, scale, 3)),
                    n);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(ReluCuda, IsRegisteredAndDeclinesAsOnTheCpu) {
  ::fuselage::cuda::ExpectSameEntries(relu::Register, RegisterCuda);
  const KernelDesc desc = Desc(Codes(DType::kU8, {2}, 1e-20f, 0), Codes(DType::kU8, {2}, 1e20f, 0));
  EXPECT_EQ(::fuselage::cuda::CreateRegistered(RegisterCuda, desc).status(), relu::Create(desc).status());
}

}  // namespace
}  // namespace fuselage::int8::relu::cuda
