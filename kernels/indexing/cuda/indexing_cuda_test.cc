#include "kernels/indexing/cuda/indexing_cuda.h"

#include <vector>

#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"
#include "kernels/cuda/testing/testing.h"
#include "kernels/indexing/indexing.h"

namespace fuselage::indexing::cuda {
namespace {

using ::fuselage::cuda::ExpectBytesOf;
using IndexingCuda = ::fuselage::cuda::CudaTest;

Tensor Positions(DType dtype, Shape shape, const std::vector<int64_t>& values) {
  Tensor positions(dtype, std::move(shape));
  for (int64_t i = 0; i < positions.num_elements(); ++i) {
    positions.Set(i, static_cast<double>(values[i % values.size()]));
  }
  return positions;
}

// Rows of every width that a word has, and of elements of every size.
TEST_F(IndexingCuda, HasTheBytesOfTheCpu) {
  for (const int64_t row : {1, 2, 3, 4, 6, 12, 64}) {
    for (const DType dtype : {DType::kU8, DType::kF32, DType::kI64}) {
      for (const int64_t dim : {0, 1, 2}) {
        const Tensor x = SeededTensor({dtype, {5, 4, row}, std::nullopt, Layout::kRowMajor}, 1);
        const DType wide = row % 2 == 0 ? DType::kI64 : DType::kI32;
        kernels::OpCall call{"index_select", {x, Positions(wide, {2, 300}, {0, -1, 0})}, {{"dim", dim}}};
        ExpectBytesOf(indexing::Register, RegisterCuda, call);
      }
    }
  }
}

TEST_F(IndexingCuda, Nothing) {
  for (const int64_t count : {0, 3}) {
    const Tensor x = SeededTensor(kernels::Floats({4, count == 0 ? 2 : 0}), 1);
    ExpectBytesOf(indexing::Register, RegisterCuda,
                  {"index_select", {x, Positions(DType::kI64, {count}, {1})}, {{"dim", int64_t{0}}}});
  }
}

// What the CPU refuses in the run.
TEST_F(IndexingCuda, BeyondTheAxisIsNaN) {
  kernels::OpCall call{"index_select",
                       {SeededTensor(kernels::Floats({4, 3}), 1), Positions(DType::kI64, {3}, {4, 1, -5})},
                       {{"dim", int64_t{0}}}};
  const auto desc = kernels::DescOf(call, Layout::kRowMajor, Layout::kRowMajor);
  const auto kernel = ::fuselage::cuda::CreateRegistered(RegisterCuda, desc);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const auto found = ::fuselage::cuda::RunCudaKernel(**kernel, desc, {&*call.operands[0], &*call.operands[1]});
  ASSERT_TRUE(found.ok()) << found.status();
  const float* y = reinterpret_cast<const float*>((*found)[0].data());
  for (int i = 0; i < 9; ++i) EXPECT_EQ(y[i] != y[i], i / 3 != 1) << i;
}

}  // namespace
}  // namespace fuselage::indexing::cuda
