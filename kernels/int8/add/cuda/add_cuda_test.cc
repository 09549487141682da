#include "kernels/int8/add/cuda/add_cuda.h"

#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"
#include "kernels/cuda/testing/testing.h"
#include "kernels/int8/add/add.h"
#include "kernels/int8/add/add_cases.h"

namespace fuselage::int8::add::cuda {
namespace {

using ::fuselage::cuda::ExpectBytesOf;
using AddCuda = ::fuselage::cuda::CudaTest;

// Every pair of codes.
TEST_F(AddCuda, HasTheBytesOfTheCpu) {
  const std::vector<KernelDesc> descs = Descs();
  Tensor a(Codes(DType::kU8, {256, 256}, 1, 0)), b = a;
  for (int i = 0; i < 65536; ++i) {
    a.Set(i, i / 256);
    b.Set(i, i % 256);
  }
  for (const KernelDesc& desc : descs) {
    a.set_type(desc.input(0));
    b.set_type(desc.input(1));
    ExpectBytesOf(add::Create, ::fuselage::cuda::CreateRegistered(RegisterCuda, desc), desc, {&a, &b});
    if (HasFatalFailure()) return;
  }
}

TEST_F(AddCuda, AnySize) {
  for (const int64_t n : {0, 1, 3, 4, 15, 16, 17, 31, 1000, 8192, 100001}) {
    KernelDesc desc = Descs()[1];
    for (auto& input : desc.inputs) input->shape = {n};
    desc.outputs[0].shape = {n};
    ExpectBytesOf(add::Create, RegisterCuda, desc, n);
    if (HasFatalFailure()) return;
  }
}

TEST_F(AddCuda, RepeatsASmallerOperand) {
  for (const KernelDesc& desc : RepeatingDescs()) {
    ExpectBytesOf(add::Create, RegisterCuda, desc);
    if (HasFatalFailure()) return;
  }
}

TEST_F(AddCuda, Broadcasts) {
  for (const kernels::OpCall& call : BroadcastingCalls()) {
    for (const Layout layout : {Layout::kRowMajor, Layout::kNhwc}) {
      ExpectBytesOf(add::Create, RegisterCuda, kernels::DescOf(call, layout, layout));
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(AddCuda, IsRegisteredAndDeclinesAsOnTheCpu) {
  ::fuselage::cuda::ExpectSameEntries(add::Register, RegisterCuda);
  const TensorType x = Codes(DType::kU8, {2, 3}, 0.5f, 1);
  const TensorType image = Codes(DType::kU8, {2, 3, 4, 5}, 0.5f, 1, Layout::kNhwc);
  for (const KernelDesc& desc : {Desc(x, x, x, "tanh"), Desc(image, Codes(DType::kU8, {1, 1, 4, 5}, 0.5f, 1), image)}) {
    const absl::Status status = add::Create(desc).status();
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(::fuselage::cuda::CreateRegistered(RegisterCuda, desc).status(), status);
  }
}

}  // namespace
}  // namespace fuselage::int8::add::cuda
