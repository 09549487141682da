#include "kernels/movement/cuda/movement_cuda.h"

#include "gtest/gtest.h"
#include "ir/ops/register_all.h"
#include "kernels/cuda/testing/testing.h"
#include "kernels/movement/movement.h"
#include "kernels/movement/movement_cases.h"

namespace fuselage::movement::cuda {
namespace {

using MovementCuda = ::fuselage::cuda::CudaTest;

// Those of the CPU's test, and ones whose rows are whole words of 16, 8, 4 and 2 bytes.
std::vector<Case> AllCases() {
  std::vector<Case> cases = Cases();
  for (const int64_t channels : {16, 8, 4, 2}) {
    cases.push_back({"cat", {{2, channels, 3, 5}, {2, 3 * channels, 3, 5}}, {{"dim", 1}}});
    cases.push_back({"cat", {{2, channels}, {3, channels}}, {{"dim", 0}}});
    cases.push_back({"split", {{2, 3 * channels, 3, 5}}, {{"sizes", Ints{channels, 2 * channels}}, {"dim", 1}}});
    cases.push_back({"permute", {{2, 3, 5, channels}}, {{"dims", Ints{1, 2, 0, 3}}}});
    cases.push_back({"expand", {{2, 1, channels}}, {{"shape", Ints{2, 3, channels}}}});
  }
  return cases;
}

TEST_F(MovementCuda, HasTheBytesOfTheCpu) {
  ir::OpRegistry ops;
  ops::RegisterAll(ops);
  kernels::KernelRegistry kernels;
  Register(kernels);
  for (const Case& test : AllCases()) {
    for (const DType dtype : {DType::kU8, DType::kF16, DType::kF32, DType::kI64}) {
      for (const Layout layout : {Layout::kRowMajor, Layout::kNhwc}) {
        const bool any_layout = kernels.FindOrNull(test.op)->layout == kernels::LayoutRule::kSame;
        if (layout == Layout::kNhwc && (!any_layout || test.inputs[0].size() != 4)) continue;
        ::fuselage::cuda::ExpectBytesOf(movement::Create, RegisterCuda,
                                        Desc(test, *ops.FindOrNull(test.op), dtype, layout));
        if (HasFatalFailure()) FAIL() << test.op;
      }
    }
  }
}

TEST_F(MovementCuda, IsRegisteredAndDeclinesAsOnTheCpu) {
  ::fuselage::cuda::ExpectSameEntries(movement::Register, RegisterCuda);
  kernels::KernelDesc desc;
  desc.op = "pad";
  desc.inputs = {Of(DType::kF32, {3})};
  desc.outputs = {Of(DType::kF32, {100'003})};
  desc.attributes = {{"pads", Attribute(Ints{0, 100'000})}, {"mode", Attribute("wrap")}, {"value", Attribute(0.0)}};
  EXPECT_EQ(::fuselage::cuda::CreateRegistered(RegisterCuda, desc).status(), movement::Create(desc).status());
}

}  // namespace
}  // namespace fuselage::movement::cuda
