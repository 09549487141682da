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

// Sizes around those of blocks, tiles and steps; with softcap, without which it does not matter what all of a query's
// scores are off by.
TEST_F(AttentionCuda, AroundBlocksAndSteps) {
  const DType types[] = {DType::kU8, DType::kI8};
  int n = 0;
  for (const int64_t queries : {1, 17, 64, 65}) {
    for (const int64_t keys : {63, 64, 65, 130}) {
      for (const int64_t depth : {15, 64, 65, 144}) {
        const int64_t width = n % 3 == 0 ? depth : 129 - depth % 16;
        Case c = {{2, 2, queries, depth}, {2, 1, keys, depth}, {2, 1, keys, width}, {}};
        if (n % 3 == 1) c.mask = {2, 1, queries, keys}, c.bool_mask = n % 2 == 0;
        c.causal = n % 5 == 0;
        c.softcap = n % 2 == 0 ? 2.5 : 0;
        const Types of = {types[n % 2], types[n / 2 % 2], types[n / 4 % 2], n % 3 == 0 ? DType::kF32 : types[n % 2]};
        ExpectBytesOf(attention::Register, RegisterCuda, CallOf(c, of, n));
        if (HasFatalFailure()) return;
        ++n;
      }
    }
  }
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
