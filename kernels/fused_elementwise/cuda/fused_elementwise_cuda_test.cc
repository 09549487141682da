#include "kernels/fused_elementwise/cuda/fused_elementwise_cuda.h"

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"
#include "kernels/cuda/testing/testing.h"
#include "kernels/fused_elementwise/fused_elementwise.h"

namespace fuselage::fused_elementwise::cuda {
namespace {

using ::fuselage::cuda::CreateRegistered;
using ::fuselage::cuda::ExpectBytesOf;
using kernels::Codes;
using kernels::KernelDesc;
using FusedElementwiseCuda = ::fuselage::cuda::CudaTest;

KernelDesc Desc(std::vector<TensorType> inputs, TensorType output, std::vector<std::string> steps) {
  KernelDesc desc;
  desc.op = "int8.fused_elementwise";
  for (TensorType& input : inputs) desc.inputs.push_back(std::move(input));
  desc.outputs = {std::move(output)};
  desc.attributes = {{"steps", Attribute(std::move(steps))}};
  return desc;
}

// All codes, and all pairs of codes, of either type.
TEST_F(FusedElementwiseCuda, HasTheBytesOfTheCpu) {
  for (const DType type : {DType::kU8, DType::kI8}) {
    const int middle = type == DType::kU8 ? 128 : 0;
    const TensorType one = Codes(type, {256}, 0.04f, middle - 7);
    Tensor x(one);
    for (int i = 0; i < 256; ++i) x.Set(i, i - 128 + middle);
    for (const char* step : {"silu(0)", "gelu(0)", "hardswish(0)", "tanh(0)", "clamp(0, max=2.0, min=-1.0)"}) {
      const KernelDesc desc = Desc({one}, Codes(DType::kU8, {256}, 0.02f, 9), {step});
      ExpectBytesOf(fused_elementwise::Create, CreateRegistered(RegisterCuda, desc), desc, {&x});
    }
    const Shape shape = {256, 256};
    const TensorType first = Codes(type, shape, 0.04f, middle), second = Codes(DType::kU8, shape, 0.07f, 3);
    Tensor a(first), b(second);
    for (int i = 0; i < 65536; ++i) {
      a.Set(i, i / 256 - 128 + middle);
      b.Set(i, i % 256);
    }
    for (const std::vector<std::string>& steps :
         {std::vector<std::string>{"mul(0, 1)"}, {"sub(0, 1)", "sigmoid(2)"}, {"div(1, 0)"}}) {
      const KernelDesc desc = Desc({first, second}, Codes(type, shape, 0.033f, middle + 5), steps);
      ExpectBytesOf(fused_elementwise::Create, CreateRegistered(RegisterCuda, desc), desc, {&a, &b});
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(FusedElementwiseCuda, Broadcasts) {
  for (const int64_t channels : {3, 16, 32}) {
    const Shape shape = {2, channels, 4, 5};
    for (const Layout layout : {Layout::kRowMajor, Layout::kNhwc}) {
      const Shape smaller[] = {{},
                               {1},
                               {5},
                               {4, 1},
                               {channels, 1, 1},
                               {channels, 4, 5},
                               {1, channels, 1, 1},
                               {2, channels, 1, 1},
                               {2, 1, 4, 1},
                               {1, 1, 1, 5},
                               shape};
      for (const Shape& other : smaller) {
        const TensorType x = Codes(DType::kU8, shape, 0.03f, 100, layout);
        const TensorType b = Codes(DType::kI8, other, 0.02f, -3, other.size() == 4 ? layout : Layout::kRowMajor);
        ExpectBytesOf(fused_elementwise::Create, RegisterCuda, Desc({x, b}, x, {"sub(0, 1)"}));
        ExpectBytesOf(fused_elementwise::Create, RegisterCuda, Desc({b, x}, x, {"mul(0, 1)"}));
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_F(FusedElementwiseCuda, AnySize) {
  for (const int64_t n : {0, 1, 3, 15, 16, 17, 1000, 10001}) {
    const TensorType x = Codes(DType::kI8, {n}, 0.03f, 7);
    ExpectBytesOf(fused_elementwise::Create, RegisterCuda, Desc({x}, x, {"sigmoid(0)"}), n);
    ExpectBytesOf(fused_elementwise::Create, RegisterCuda, Desc({x, x}, x, {"mul(0, 1)"}), n);
    if (HasFatalFailure()) return;
  }
}

TEST_F(FusedElementwiseCuda, IsRegisteredAsOnTheCpuButForFloats) {
  kernels::KernelRegistry on_cpu, on_cuda;
  fused_elementwise::Register(on_cpu);
  RegisterCuda(on_cuda);
  EXPECT_EQ(on_cuda.Sorted().size() + 1, on_cpu.Sorted().size());
  EXPECT_EQ(on_cuda.FindOrNull("fused_elementwise"), nullptr);
  const kernels::KernelEntry* mul = on_cuda.FindOrNull("int8.mul");
  ASSERT_NE(mul, nullptr);
  EXPECT_EQ(mul->layout, kernels::LayoutRule::kSame);
}

TEST_F(FusedElementwiseCuda, Declines) {
  const TensorType x = Codes(DType::kU8, {4}, 0.1f, 0);
  const KernelDesc three = Desc({x, x, x}, x, {"mul(0, 1)", "mul(3, 2)"});
  EXPECT_EQ(CreateRegistered(RegisterCuda, three).status().code(), absl::StatusCode::kUnimplemented);
  const KernelDesc wrong = Desc({x}, x, {"mul(0, 1)"});
  EXPECT_FALSE(CreateRegistered(RegisterCuda, wrong).ok());
  EXPECT_EQ(CreateRegistered(RegisterCuda, wrong).status(), fused_elementwise::Create(wrong).status());
}

}  // namespace
}  // namespace fuselage::fused_elementwise::cuda
