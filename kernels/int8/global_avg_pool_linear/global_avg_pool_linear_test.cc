// Against the scalar kernels of int8.global_avg_pool and int8.linear, one after the other.
#include "kernels/int8/global_avg_pool_linear/global_avg_pool_linear.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"
#include "kernels/int8/global_avg_pool_linear/global_avg_pool_linear_cases.h"

namespace fuselage::int8::global_avg_pool_linear {
namespace {

using kernels::Isa;
using ::testing::HasSubstr;

void ExpectTheBitsOfTheParts(const Case& c, uint64_t seed = 1) {
  Layer layer(c, seed);
  const Tensor x = SeededTensor(layer.whole.input(0), seed + 7);
  const Tensor wanted = layer.Reference(x);
  for (const Isa isa : kernels::SupportedIsas()) {
    layer.whole.isa = isa;
    for (const int threads : {1, 2, 3}) {
      layer.whole.threads = threads;
      ASSERT_TRUE(layer.Run(Create(layer.whole), x, threads).SameBytes(wanted))
          << ToString(c) << " " << kernels::IsaName(isa) << " on " << threads;
    }
  }
}

TEST(GlobalAvgPoolLinear, ResNetHead) {
  Case c;
  c.input = {1, 512, 7, 7};
  c.classes = 1000;
  ExpectTheBitsOfTheParts(c);
  c.input[0] = 5;
  ExpectTheBitsOfTheParts(c);
}

TEST(GlobalAvgPoolLinear, AnyTypes) {
  for (const Case& c : TypeCases()) {
    ExpectTheBitsOfTheParts(c);
    if (HasFatalFailure()) return;
  }
}

TEST(GlobalAvgPoolLinear, RandomShapes) {
  uint64_t seed = 0;
  for (const Case& c : RandomCases()) {
    ExpectTheBitsOfTheParts(c, seed++);
    if (HasFatalFailure()) return;
  }
}

TEST(Create, SaysWhatIsWrong) {
  const auto message = [](auto edit) {
    Layer layer{Case()};
    edit(layer.whole);
    return std::string(Create(layer.whole).status().message());
  };
  EXPECT_THAT(message([](KernelDesc& d) { d.inputs[0]->shape = {2, 24}; }), HasSubstr("wanted one operand of rank 4"));
  EXPECT_THAT(message([](KernelDesc& d) { d.parameters.clear(); }), HasSubstr("a constant weight"));
  EXPECT_THAT(message([](KernelDesc& d) { d.inputs[0]->shape[1] = 23; }), HasSubstr("wanted [..., K] and [N, K]"));
  EXPECT_THAT(message([](KernelDesc& d) { d.attributes.insert_or_assign("pool_out_zero_point", 300); }),
              HasSubstr("300"));
  EXPECT_THAT(message([](KernelDesc& d) { d.attributes.insert_or_assign("activation", "elu"); }), HasSubstr("elu"));
}

}  // namespace
}  // namespace fuselage::int8::global_avg_pool_linear
