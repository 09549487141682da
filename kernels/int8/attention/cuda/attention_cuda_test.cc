#include "kernels/int8/attention/cuda/attention_cuda.h"

#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"
#include "kernels/cuda/testing/testing.h"
#include "kernels/int8/attention/attention.h"
#include "kernels/int8/attention/attention_cases.h"

namespace fuselage::int8::attention::cuda {
namespace {

using ::fuselage::cuda::ExpectBytesOf;
using AttentionCuda = ::fuselage::cuda::CudaTest;

TEST_F(AttentionCuda, HasTheBytesOfTheCpu) {
  for (const OpCall& call : Calls()) ExpectBytesOf(attention::Register, RegisterCuda, call);
}

// More elements than a block has.
TEST_F(AttentionCuda, WideValues) {
  const Case c = {{1, 2, 3, 4}, {1, 2, 5, 4}, {1, 2, 5, 300}, {}};
  ExpectBytesOf(attention::Register, RegisterCuda, CallOf(c, {DType::kU8, DType::kI8, DType::kU8, DType::kI8}, 1));
}

// The longest sums, at both ends of the codes and of their zero points.
TEST_F(AttentionCuda, EndsOfTheCodesAreExact) {
  for (const DType dtype : {DType::kU8, DType::kI8}) {
    const IntegerRange range = RangeOf(dtype);
    for (const bool greatest : {false, true}) {
      const auto operand = [&](Shape shape) {
        Tensor x(kernels::Codes(dtype, std::move(shape), 0.02f, static_cast<int>(greatest ? range.min : range.max)));
        for (int64_t i = 0; i < x.num_elements(); ++i) x.Set(i, static_cast<double>(greatest ? range.max : range.min));
        return x;
      };
      kernels::OpCall call{
          "int8.attention",
          {operand({1, 1, 1, 33025}), operand({1, 1, 40, 33025}), operand({1, 1, 40, 33}), std::nullopt},
          {{"scale", 1e-6}, {"out_dtype", DType::kF32}}};
      ExpectBytesOf(attention::Register, RegisterCuda, call);
    }
  }
}

TEST_F(AttentionCuda, IsRegisteredAndDeclinesAsOnTheCpu) {
  ::fuselage::cuda::ExpectSameEntries(attention::Register, RegisterCuda);
  const Case c = {{1, 1, 1, 4}, {1, 1, 33026, 4}, {1, 1, 33026, 4}, {}};
  const auto call = CallOf(c, {DType::kU8, DType::kU8, DType::kU8, DType::kU8}, 1);
  const auto desc = kernels::DescOf(call, Layout::kRowMajor, Layout::kRowMajor);
  EXPECT_EQ(::fuselage::cuda::CreateRegistered(RegisterCuda, desc).status(), attention::Create(desc).status());
}

}  // namespace
}  // namespace fuselage::int8::attention::cuda
