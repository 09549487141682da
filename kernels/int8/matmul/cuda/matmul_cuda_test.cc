#include "kernels/int8/matmul/cuda/matmul_cuda.h"

#include <utility>

#include "gtest/gtest.h"
#include "kernels/core/registry.h"
#include "kernels/core/testing/testing.h"
#include "kernels/cuda/testing/testing.h"
#include "kernels/int8/matmul/cuda/create.h"
#include "kernels/int8/matmul/matmul.h"
#include "kernels/int8/matmul/matmul_cases.h"

namespace fuselage::int8::matmul::cuda {
namespace {

using ::fuselage::cuda::ExpectBytesOf;
using MatmulCuda = ::fuselage::cuda::CudaTest;

void RegisterNarrow(kernels::KernelRegistry& registry) {
  registry.Register({"int8.matmul", kernels::LayoutRule::kRowMajor,
                     [](const kernels::KernelDesc& desc) { return Create(desc, /*wide=*/false); }});
}

TEST_F(MatmulCuda, HasTheBytesOfTheCpu) {
  for (const OpCall& call : Calls()) {
    ExpectBytesOf(matmul::Register, RegisterCuda, call);
    ExpectBytesOf(matmul::Register, RegisterNarrow, call);
  }
}

// Sizes around those of blocks and steps, and rows that begin at every byte of a word: pieces of 16 codes that are
// copied as they are, put together of words, and of bytes at the ends.
TEST_F(MatmulCuda, AroundBlocksAndSteps) {
  int n = 0;
  for (const int64_t depth : {63, 64, 192, 193}) {
    for (const int64_t columns : {63, 64, 65, 80, 130}) {
      for (const int64_t rows : {1, 64, 129}) {
        const DType a = n % 2 == 0 ? DType::kU8 : DType::kI8, b = n % 3 == 0 ? DType::kI8 : DType::kU8;
        const OpCall call = Call({a, {2, rows, depth}, 3 * (n % 5)}, {b, {2, depth, columns}, 7 * (n % 4)},
                                 n % 4 == 0 ? DType::kF32 : DType::kI8);
        ExpectBytesOf(matmul::Register, n % 2 == 0 ? RegisterCuda : RegisterNarrow, call);
        ++n;
      }
    }
  }
}

TEST_F(MatmulCuda, WideBlocksFillTheDevice) {
  const auto variant = [](int64_t rows) {
    const auto desc = kernels::DescOf(Call({DType::kU8, {rows, 8}, 0}, {DType::kU8, {8, 8}, 0}, DType::kU8),
                                      Layout::kRowMajor, Layout::kRowMajor);
    return (*Create(desc))->variant();
  };
  EXPECT_EQ(variant(64), "cuda mma 64x64");
  EXPECT_EQ(variant(1 << 20), "cuda mma 128x64");
}

// The longest sums of the widest products.
TEST_F(MatmulCuda, EndsOfTheCodesAreExact) {
  for (const DType dtype : {DType::kU8, DType::kI8}) {
    const IntegerRange range = RangeOf(dtype);
    for (const bool greatest : {false, true}) {
      const auto operand = [&](Shape shape) {
        Tensor x(kernels::Codes(dtype, std::move(shape), 1, static_cast<int32_t>(greatest ? range.min : range.max)));
        for (int64_t i = 0; i < x.num_elements(); ++i) x.Set(i, static_cast<double>(greatest ? range.max : range.min));
        return x;
      };
      ExpectBytesOf(matmul::Register, RegisterCuda,
                    {"int8.matmul", {operand({1, 33025}), operand({33025, 1})}, {{"out_dtype", DType::kF32}}});
    }
  }
}

TEST_F(MatmulCuda, IsRegisteredAsOnTheCpu) { ::fuselage::cuda::ExpectSameEntries(matmul::Register, RegisterCuda); }

}  // namespace
}  // namespace fuselage::int8::matmul::cuda
