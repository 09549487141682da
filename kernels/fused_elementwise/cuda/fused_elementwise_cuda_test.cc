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

// Every step that devices compute, of floats, among them what rounds and what does not compare.
TEST_F(FusedElementwiseCuda, FloatsHaveTheBytesOfTheCpu) {
  const TensorType type = kernels::Floats({3, 40});
  Tensor a = SeededTensor(type, 1), b = SeededTensor(type, 2);
  const float special[] = {0.0f, -0.0f, 1e-40f, 3e38f, -100.0f, 0.5f, -0.5f};
  for (int i = 0; i < 7; ++i) a.data<float>()[i] = b.data<float>()[7 * i + 3] = special[i];
  for (const char* step : {"add(0, 1)",
                           "add(0, 1, activation=\"relu\", alpha=0.3)",
                           "sub(0, 1)",
                           "mul(0, 1)",
                           "div(0, 1)",
                           "maximum(0, 1)",
                           "minimum(0, 1)",
                           "prelu(0, 1)",
                           "relu(0)",
                           "clamp(0, max=0.2, min=-0.4)",
                           "abs(0)",
                           "neg(0)",
                           "sign(0)",
                           "reciprocal(0)",
                           "softsign(0)",
                           "threshold(0, threshold=0.1, value=7.0)",
                           "leaky_relu(0, negative_slope=0.1)",
                           "hardsigmoid(0)",
                           "hardswish(0)",
                           "sigmoid(0)",
                           "silu(0)",
                           "tanh(0)",
                           "gelu(0)",
                           "gelu(0, approximate=\"tanh\")"}) {
    KernelDesc desc = Desc({type, type}, type, {step});
    desc.op = "fused_elementwise";
    ExpectBytesOf(fused_elementwise::Create, CreateRegistered(RegisterCuda, desc), desc, {&a, &b});
  }
}

// A rotary embedding, on floats and on codes.
TEST_F(FusedElementwiseCuda, FourOperandsThatAreBroadcast) {
  const std::vector<std::string> steps = {"mul(0, 1)", "mul(2, 3)", "add(4, 5)"};
  const Shape shape = {1, 4, 9, 16}, table = {9, 16};
  KernelDesc desc =
      Desc({kernels::Floats(shape), kernels::Floats(table), kernels::Floats(shape), kernels::Floats(table)},
           kernels::Floats(shape), steps);
  desc.op = "fused_elementwise";
  ExpectBytesOf(fused_elementwise::Create, RegisterCuda, desc);
  for (const DType type : {DType::kU8, DType::kI8}) {
    const TensorType x = Codes(type, shape, 0.03f, 5), other = Codes(DType::kU8, shape, 0.02f, 120);
    const TensorType y = Codes(DType::kI8, table, 0.008f, -3), z = Codes(DType::kU8, table, 0.007f, 127);
    ExpectBytesOf(fused_elementwise::Create, RegisterCuda, Desc({x, y, other, z}, x, steps));
  }
}

// As one step, without steps among the attributes.
TEST_F(FusedElementwiseCuda, OperatorsOfFloats) {
  for (const char* op : {"mul", "neg"}) {
    KernelDesc desc = Desc({kernels::Floats({5, 1, 8})}, kernels::Floats({5, 3, 8}), {});
    desc.op = op;
    desc.attributes.clear();
    if (desc.op == "mul") desc.inputs.push_back(kernels::Floats({3, 1}));
    if (desc.op == "neg") desc.outputs[0] = desc.input(0);
    ExpectBytesOf(fused_elementwise::Create, RegisterCuda, desc);
  }
}

// Whose entry is cuDNN's: with positions, one for all images, as a vision transformer has them.
TEST_F(FusedElementwiseCuda, SumsOfFloats) {
  const auto register_add = [](kernels::KernelRegistry& registry) {
    registry.Register({"add", kernels::LayoutRule::kSame, Create});
  };
  for (const char* activation : {"none", "relu"}) {
    KernelDesc desc =
        Desc({kernels::Floats({3, 50, 16}), kernels::Floats({1, 50, 16})}, kernels::Floats({3, 50, 16}), {});
    desc.op = "add";
    desc.attributes = {{"alpha", Attribute(-0.5)}, {"activation", Attribute(std::string(activation))}};
    ExpectBytesOf(fused_elementwise::Create, register_add, desc);
  }
}

TEST_F(FusedElementwiseCuda, IsRegisteredAsOnTheCpuAndForFloats) {
  kernels::KernelRegistry on_cpu, on_cuda;
  fused_elementwise::Register(on_cpu);
  RegisterCuda(on_cuda);
  for (const kernels::KernelEntry* entry : on_cpu.Sorted()) {
    const kernels::KernelEntry* found = on_cuda.FindOrNull(entry->op);
    ASSERT_NE(found, nullptr) << entry->op;
    EXPECT_EQ(found->layout, entry->layout);
    if (entry->op == "fused_elementwise") continue;
    EXPECT_NE(on_cuda.FindOrNull(entry->op.substr(5)), nullptr) << entry->op;
  }
}

TEST_F(FusedElementwiseCuda, Declines) {
  const TensorType x = kernels::Floats({4});
  const auto code = [](KernelDesc desc) {
    desc.op = "fused_elementwise";
    return CreateRegistered(RegisterCuda, desc).status().code();
  };
  EXPECT_EQ(code(Desc(std::vector<TensorType>(9, x), x, {"mul(0, 1)"})), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(code(Desc({x}, x, std::vector<std::string>(17, "neg(0)"))), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(code(Desc({x}, x, {"exp(0)"})), absl::StatusCode::kUnimplemented);
  const KernelDesc wrong = Desc({x}, x, {"mul(0, 1)"});
  EXPECT_FALSE(CreateRegistered(RegisterCuda, wrong).ok());
  EXPECT_EQ(CreateRegistered(RegisterCuda, wrong).status(), fused_elementwise::Create(wrong).status());
}

}  // namespace
}  // namespace fuselage::fused_elementwise::cuda
