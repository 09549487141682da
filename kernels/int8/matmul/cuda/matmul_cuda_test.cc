#include "kernels/int8/matmul/cuda/matmul_cuda.h"

#include <utility>

#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"
#include "kernels/cuda/testing/testing.h"
#include "kernels/int8/matmul/matmul.h"
#include "kernels/int8/matmul/matmul_cases.h"

namespace fuselage::int8::matmul::cuda {
namespace {

using ::fuselage::cuda::ExpectBytesOf;
using MatmulCuda = ::fuselage::cuda::CudaTest;

TEST_F(MatmulCuda, HasTheBytesOfTheCpu) {
  for (const OpCall& call : Calls()) ExpectBytesOf(matmul::Register, RegisterCuda, call);
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
