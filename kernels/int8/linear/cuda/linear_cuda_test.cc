#include "kernels/int8/linear/cuda/linear_cuda.h"

#include <limits>
#include <optional>

#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"
#include "kernels/cuda/testing/testing.h"
#include "kernels/int8/linear/cuda/create.h"
#include "kernels/int8/linear/linear.h"
#include "kernels/int8/linear/linear_cases.h"

namespace fuselage::int8::linear::cuda {
namespace {

using ::fuselage::cuda::ExpectBytesOf;
using LinearCuda = ::fuselage::cuda::CudaTest;

using TestLayer = linear::Layer;

// Whatever the size.
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
const Options kNarrow = {kNever, false}, kWide = {kNever, true}, kCublasLt = {0, std::nullopt};

TEST_F(LinearCuda, HasTheBytesOfTheCpu) {
  for (TestLayer& layer : Layers()) {
    const KernelDesc& desc = layer.Describe();
    const Tensor x = SeededTensor(desc.input(0), 5);
    for (const Options& options : {kNarrow, kWide, kCublasLt, Options()}) {
      ExpectBytesOf(linear::Create, Create(desc, options), desc, {&x});
    }
    if (HasFatalFailure()) return;
  }
}

// Several tiles, and more of k than the warps of a block take at once.
TEST_F(LinearCuda, LargeLayers) {
  const int64_t sizes[][3] = {{1, 1000, 512}, {70, 50, 600}, {150, 33, 1024}, {33, 96, 1100}};
  for (const auto& s : sizes) {
    for (const DType dtype : {DType::kU8, DType::kI8}) {
      TestLayer layer({s[0], s[2]}, s[1], dtype, 3, Output::kF32, "none");
      const KernelDesc& desc = layer.Describe();
      const Tensor x = SeededTensor(desc.input(0), 5);
      for (const Options& options : {kNarrow, kWide, kCublasLt}) {
        ExpectBytesOf(linear::Create, Create(desc, options), desc, {&x});
      }
      if (HasFatalFailure()) return;
    }
  }
}

// Each row by a scale of its own.
TEST_F(LinearCuda, ScalesOfRows) {
  for (const char* activation : {"none", "relu", "silu"}) {
    TestLayer layer({2, 21, 70}, 40, DType::kI8, 0, Output::kF32, activation);
    layer.desc.inputs = {TensorType{DType::kI8, {2, 21, 70}, std::nullopt, Layout::kRowMajor},
                         kernels::Floats({2, 21, 1})};
    const KernelDesc& desc = layer.Describe();
    const Tensor x = SeededTensor(desc.input(0), 5), scales = SeededTensor(desc.input(1), 6);
    for (const Options& options : {kNarrow, kWide, kCublasLt}) {
      ExpectBytesOf(linear::Create, Create(desc, options), desc, {&x, &scales});
    }
  }
}

// Codes and weights at their ends.
TEST_F(LinearCuda, DoesNotSaturate) {
  for (const DType type : {DType::kU8, DType::kI8}) {
    for (const double code : {RangeOf(type).min, RangeOf(type).max}) {
      for (const double w : {-128.0, 127.0}) {
        TestLayer layer({1, 64}, 16, type, 0, Output::kF32, "none");
        Tensor x(layer.desc.input(0));
        for (int64_t i = 0; i < 64; ++i) x.Set(i, code);
        for (int64_t i = 0; i < 64 * 16; ++i) layer.weight.Set(i, w);
        const KernelDesc& desc = layer.Describe();
        for (const Options& options : {kNarrow, kWide, kCublasLt}) {
          ExpectBytesOf(linear::Create, Create(desc, options), desc, {&x});
        }
      }
    }
  }
}

TEST_F(LinearCuda, LeavesLargeProductsToCublasLt) {
  TestLayer small({1, 512}, 1000, DType::kU8, 3, Output::kF32, "none"),
      large({2048, 1024}, 512, DType::kU8, 3, Output::kU8, "none");
  EXPECT_EQ((*Create(small.Describe()))->variant().substr(0, 8), "cuda mma");
  EXPECT_EQ((*Create(large.Describe()))->variant(), "cuda cublasLt");
}

TEST_F(LinearCuda, IsRegisteredAndDeclinesAsOnTheCpu) {
  ::fuselage::cuda::ExpectSameEntries(linear::Register, RegisterCuda);
  TestLayer layer({2, 8}, 4, DType::kU8, 3, Output::kU8, "gelu");
  EXPECT_EQ(Create(layer.Describe()).status(), linear::Create(layer.Describe()).status());
}

}  // namespace
}  // namespace fuselage::int8::linear::cuda
