#include "kernels/int8/linear_groups/linear_groups.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"
#include "kernels/core/testing/variant_test.h"
#include "kernels/int8/linear_groups/linear_groups_cases.h"
#include "kernels/testing/reference.h"

namespace fuselage::int8::linear_groups {
namespace {

using kernels::KernelDesc;
using kernels::OpCall;
using ::testing::HasSubstr;

kernels::KernelEntry EntryOf(const Variant& variant) {
  return {"int8.linear_groups", kernels::LayoutRule::kRowMajor,
          [variant](const KernelDesc& desc) { return CreateVariant(desc, variant); }};
}

std::vector<Variant> AllVariants() {
  std::vector<Variant> variants = kernels::WithEmulated<Variant, Function>(Variants(), avx512_vnni_emulated::Run);
  for (Variant& variant : variants) {
    if (variant.run == avx512_vnni_emulated::Run) variant.activate = kernels::avx512_vnni_emulated::Activate;
  }
  return variants;
}

std::vector<OpCall> AllCalls() {
  std::vector<OpCall> calls = Calls();
  for (OpCall& call : IntegerCalls()) calls.push_back(std::move(call));
  return calls;
}

TEST(LinearGroups, HasTheReferencesBits) {
  kernels::KernelRegistry registry;
  Register(registry);
  for (const OpCall& call : AllCalls()) EXPECT_EQ(DifferenceFromReference(registry, call), "");
}

using VariantTest = kernels::VariantTest<Variant>;

TEST_P(VariantTest, EqualsScalar) {
  for (const OpCall& call : AllCalls()) {
    const KernelDesc desc = DescOf(call, Layout::kRowMajor, Layout::kRowMajor);
    const auto wanted = RunCall(EntryOf(Variants()[0]), call, desc);
    const auto found = RunCall(EntryOf(GetParam()), call, desc);
    ASSERT_TRUE(wanted.ok() && found.ok()) << wanted.status() << found.status();
    ASSERT_TRUE((*found)[0].SameBytes((*wanted)[0])) << ToString(desc.input(0)) << " to " << ToString(desc.output());
  }
}

// Sums that 16 bits would spoil: all codes and weights at their ends, of one row and of several, which AVX2 multiplies
// otherwise.
void ExpectAll(const Variant& variant, OpCall call, double wanted) {
  ForEach<float>(*call.operands[3], [](float& scale) { scale = 1; });
  const auto found = RunCall(EntryOf(variant), call, DescOf(call, Layout::kRowMajor, Layout::kRowMajor));
  ASSERT_TRUE(found.ok()) << found.status();
  for (int64_t i = 0; i < (*found)[0].num_elements(); ++i) ASSERT_EQ((*found)[0].At(i), wanted) << i;
}

TEST_P(VariantTest, DoesNotSaturate) {
  for (const int64_t rows : {1, 7}) {
    for (const int8_t x : {int8_t{-128}, int8_t{127}}) {
      for (const uint8_t w : {uint8_t{7}, uint8_t{15}}) {
        OpCall call = Call({rows, 64}, 16, "none", false);
        ForEach<int8_t>(*call.operands[0], [x](int8_t& code) { code = x; });
        ForEach<uint8_t>(*call.operands[1], [w](uint8_t& code) { code = w; });
        ForEach<uint8_t>(*call.operands[2], [](uint8_t& code) { code = 128; });
        ExpectAll(GetParam(), call, x * (w == 7 ? 12 : -12) * 64);
      }
    }
  }
}

TEST_P(VariantTest, IntegersDoNotSaturate) {
  for (const int64_t rows : {1, 7}) {
    for (const int8_t x : {int8_t{-128}, int8_t{127}}) {
      for (const int w : {-128, -15, -8, 7, 15, 127}) {
        for (const int other : {0, 1}) {  // Of one code a group is four bits from it on; 128 apart it is bytes.
          OpCall call = IntegerCall({rows, 256}, 16, 8, 128, "none", false);
          ForEach<int8_t>(*call.operands[0], [x](int8_t& code) { code = x; });
          ForEach<int8_t>(*call.operands[1], [w](int8_t& code) { code = static_cast<int8_t>(w); });
          ForEach<float>(*call.operands[2], [](float& scale) { scale = 0.25f; });
          if (other == 1) {  // In each channel, times a code of 0.
            for (int64_t n = 0; n < 16; ++n) call.operands[1]->Set(n * 256, w < 0 ? 127 : -128);
            for (int64_t row = 0; row < rows; ++row) call.operands[0]->Set(row * 256, 0);
          }
          ExpectAll(GetParam(), call, x * w * (256 - other) / 4.0);
        }
      }
    }
  }
}

// What the layer reads of memory: 4 bits a weight and a float for each group, a byte more where groups have zero
// points, 8 bits where one group needs them.
TEST(LinearGroups, PacksWhatFitsInFourBits) {
  const auto bytes = [](const OpCall& call) {
    return (*CreateVariant(DescOf(call, Layout::kRowMajor, Layout::kRowMajor), Variants()[0]))->weight_bytes();
  };
  OpCall call = IntegerCall({1, 256}, 16, 4, 64);
  EXPECT_EQ(bytes(call), 16 * 128 + 16 * 4 * 4 + 16 * 4);
  ForEach<int8_t>(*call.operands[1], [](int8_t& code) { code = static_cast<int8_t>(code + 4); });
  EXPECT_EQ(bytes(call), 16 * 128 + 16 * 4 * 5 + 16 * 4);
  call.operands[1]->data<int8_t>()[5] = 12;
  EXPECT_EQ(bytes(call), 16 * 256 + 16 * 4 * 4 + 16 * 4);
}

// Passes ask for each layer of a network.
TEST(LinearGroups, SaysWhatItWouldRunWithoutPacking) {
  kernels::KernelRegistry registry;
  Register(registry);
  const OpCall call = Call({2, 32}, 3, "relu");
  kernels::PackedWeights weights;
  KernelDesc desc = DescOf(call, Layout::kRowMajor, Layout::kRowMajor);
  desc.weights = &weights;
  const auto variant = registry.FindOrNull(desc.op)->Supports(desc);
  EXPECT_EQ(weights.packings(), 0);
  EXPECT_EQ(variant.value(), (*Create(desc))->variant());
  EXPECT_GT(weights.packings(), 0);
}

INSTANTIATE_TEST_SUITE_P(All, VariantTest, ::testing::ValuesIn(AllVariants()), kernels::VariantName());

TEST(Create, Declines) {
  const auto message = [](const OpCall& call) {
    return std::string(Create(DescOf(call, Layout::kRowMajor, Layout::kRowMajor)).status().message());
  };
  EXPECT_EQ(message(Call({2, 32}, 3, "relu")), "");
  OpCall call = Call({2, 32}, 3, "none");
  call.operands[2]->data<uint8_t>()[2] = 255;
  EXPECT_THAT(message(call), HasSubstr("output channel 2: weight_scale is 255, wanted one in [2, 254]"));
  EXPECT_THAT(message(Call({2, 32}, 3, "clamp(min=0, max=6)")), HasSubstr("of a float result"));
  EXPECT_THAT(message(Call({2, 0}, 3, "none")), HasSubstr("K not 0"));
  EXPECT_THAT(message(IntegerCall({2, 32}, 3, 8, 16)), HasSubstr("by 16, output"));
  call = IntegerCall({2, 64}, 3, 8, 32);
  call.operands[2]->data<float>()[3] = std::numeric_limits<float>::infinity();
  EXPECT_THAT(message(call), HasSubstr("output channel 1: weight_scale is inf, wanted a finite one"));
}

}  // namespace
}  // namespace fuselage::int8::linear_groups
