#include "kernels/dynamic_quantize/cuda/dynamic_quantize_cuda.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"
#include "kernels/cuda/testing/testing.h"
#include "kernels/dynamic_quantize/dynamic_quantize.h"

namespace fuselage::dynamic_quantize::cuda {
namespace {

using ::fuselage::cuda::ExpectBytesOf;
using DynamicQuantizeCuda = ::fuselage::cuda::CudaTest;
using Ints = std::vector<int64_t>;

kernels::OpCall CallOf(const Shape& shape, const Ints& dims) {
  return {"dynamic_quantize_symmetric", {SeededTensor(kernels::Floats(shape), 1)}, {{"dims", dims}}};
}

TEST_F(DynamicQuantizeCuda, HasTheBytesOfTheCpu) {
  const struct {
    Shape shape;
    Ints dims;
  } cases[] = {{{1}, {0}},          {{7, 33}, {-1}},     {{2, 9, 256}, {-1}}, {{1, 4, 10, 64}, {1, 3}},
               {{3, 5, 7}, {0, 1}}, {{2, 3, 4, 5}, {2}}, {{40, 50}, {}},      {{0, 4}, {1}},
               {{3, 1}, {1}},       {{2, 3, 65}, {1, 2}}};
  for (const auto& [shape, dims] : cases) ExpectBytesOf(dynamic_quantize::Register, RegisterCuda, CallOf(shape, dims));
}

TEST_F(DynamicQuantizeCuda, RowsOfZerosAndTinyRowsHaveScaleOne) {
  kernels::OpCall call = CallOf({4, 40}, {1});
  float* x = call.operands[0]->data<float>();
  for (int i = 0; i < 40; ++i) {
    x[i] = 0;
    x[40 + i] = -1e-40f;
    x[80 + i] = i == 7 ? -3e38f : 1;  // The greatest magnitude is negative.
  }
  ExpectBytesOf(dynamic_quantize::Register, RegisterCuda, call);
}

// What the CPU refuses in the run.
TEST_F(DynamicQuantizeCuda, WhatIsNotFiniteIsTheScale) {
  for (const float bad : {INFINITY, -INFINITY, NAN}) {
    kernels::OpCall call = CallOf({2, 40}, {1});
    call.operands[0]->data<float>()[55] = bad;
    const auto desc = kernels::DescOf(call, Layout::kRowMajor, Layout::kRowMajor);
    const auto kernel = ::fuselage::cuda::CreateRegistered(RegisterCuda, desc);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    const auto found = ::fuselage::cuda::RunCudaKernel(**kernel, desc, {&*call.operands[0]});
    ASSERT_TRUE(found.ok()) << found.status();
    float scales[2];
    std::memcpy(scales, (*found)[1].data(), sizeof(scales));
    EXPECT_TRUE(std::isfinite(scales[0]));
    EXPECT_TRUE(scales[1] == bad || (bad != bad && scales[1] != scales[1])) << bad << " " << scales[1];
  }
}

}  // namespace
}  // namespace fuselage::dynamic_quantize::cuda
