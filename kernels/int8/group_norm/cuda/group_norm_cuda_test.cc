#include "kernels/int8/group_norm/cuda/group_norm_cuda.h"

#include "gtest/gtest.h"
#include "kernels/cuda/testing/testing.h"
#include "kernels/int8/group_norm/group_norm.h"
#include "kernels/int8/group_norm/group_norm_cases.h"

namespace fuselage::int8::group_norm::cuda {
namespace {

using ::fuselage::cuda::CreateRegistered;
using kernels::KernelDesc;
using kernels::OpCall;
using GroupNormCuda = ::fuselage::cuda::CudaTest;

void ExpectBytesOfTheCpu(const OpCall& call) {
  for (const Layout layout : {Layout::kNhwc, Layout::kRowMajor}) {
    const KernelDesc desc = DescOf(call, layout, layout);
    const Tensor x = kernels::InLayout(*call.operands[0], layout);
    ::fuselage::cuda::ExpectBytesOf(group_norm::Create, CreateRegistered(RegisterCuda, desc), desc, {&x});
  }
}

TEST_F(GroupNormCuda, HasTheBytesOfTheCpu) {
  for (const Case& c : Cases()) {
    ExpectBytesOfTheCpu(c.call());
    if (HasFatalFailure()) FAIL() << c.groups << " groups, " << c.activation;
  }
}

TEST_F(GroupNormCuda, MoreChannelsThanAtOnce) {
  for (const int64_t channels : {kChannelsAtOnce - 1, kChannelsAtOnce, kChannelsAtOnce + 1, 2 * kChannelsAtOnce + 4}) {
    ExpectBytesOfTheCpu(Case{{2, 2 * channels, 2, 3}, 2}.call());
  }
}

// Codes at both ends alone, and one code alone, which has no variance.
TEST_F(GroupNormCuda, ExtremeCodes) {
  for (const DType dtype : {DType::kU8, DType::kI8}) {
    for (const int code : {0x00, 0x7f, 0x80, 0xff}) {
      for (const int other : {code, code ^ 0xff}) {
        OpCall call = Case{{1, 6, 9, 11}, 2, dtype, dtype}.call();
        auto* codes = static_cast<uint8_t*>(call.operands[0]->raw_data());
        for (int64_t i = 0; i < call.operands[0]->num_elements(); ++i) {
          codes[i] = static_cast<uint8_t>(i % 7 == 0 ? other : code);
        }
        ExpectBytesOfTheCpu(call);
      }
    }
  }
}

TEST_F(GroupNormCuda, IsRegisteredAndDeclinesAsOnTheCpu) {
  ::fuselage::cuda::ExpectSameEntries(group_norm::Register, RegisterCuda);
  const OpCall call = Case{{2, 4, 3, 3}, 2}.call();
  KernelDesc desc = DescOf(call, Layout::kNhwc, Layout::kNhwc);
  desc.inputs[0] = kernels::Floats({2, 4, 3, 3}, Layout::kNhwc);
  EXPECT_EQ(CreateRegistered(RegisterCuda, desc).status(), group_norm::Create(desc).status());
  for (auto* type : {&*(desc.inputs[0] = desc.output()), &desc.outputs[0]}) type->shape = {1 << 20, 4, 1 << 9, 1};
  EXPECT_TRUE(group_norm::Create(desc).ok());
  EXPECT_EQ(CreateRegistered(RegisterCuda, desc).status().code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace fuselage::int8::group_norm::cuda
