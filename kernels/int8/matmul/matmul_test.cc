#include "kernels/int8/matmul/matmul.h"

#include <cmath>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"
#include "kernels/core/testing/variant_test.h"
#include "kernels/int8/matmul/matmul_cases.h"
#include "kernels/testing/reference.h"

namespace fuselage::int8::matmul {
namespace {

using kernels::KernelDesc;
using kernels::OpCall;
using linear::Variant;
using ::testing::HasSubstr;

kernels::KernelEntry EntryOf(const Variant& variant) {
  return {"int8.matmul", kernels::LayoutRule::kRowMajor,
          [variant](const KernelDesc& desc) { return matmul::CreateVariant(desc, variant); }};
}

TEST(Matmul, HasTheReferencesBits) {
  kernels::KernelRegistry registry;
  Register(registry);
  for (const OpCall& call : Calls()) EXPECT_EQ(DifferenceFromReference(registry, call), "");
}

using VariantTest = kernels::VariantTest<Variant>;

TEST_P(VariantTest, EqualsScalar) {
  for (const OpCall& call : Calls()) {
    const KernelDesc desc = DescOf(call, Layout::kRowMajor, Layout::kRowMajor);
    const auto wanted = RunCall(EntryOf(linear::Variants()[0]), call, desc);
    const auto found = RunCall(EntryOf(GetParam()), call, desc);
    ASSERT_TRUE(wanted.ok() && found.ok()) << wanted.status() << found.status();
    ASSERT_TRUE((*found)[0].SameBytes((*wanted)[0])) << ToString(desc.input(0)) << " " << ToString(desc.input(1));
  }
}

// The longest sums of the widest products, which 16 bits would spoil and addends alone leave 32 bits.
TEST_P(VariantTest, EndsOfTheCodesAreExact) {
  constexpr int64_t kDepth = 33025;
  const auto all = [&](DType dtype, Shape shape, bool greatest, bool zero_point_is_greatest) {
    const IntegerRange range = RangeOf(dtype);
    const int64_t zero_point = zero_point_is_greatest ? range.max : range.min;
    Tensor x(kernels::Codes(dtype, std::move(shape), 1, static_cast<int32_t>(zero_point)));
    for (int64_t i = 0; i < x.num_elements(); ++i) x.Set(i, static_cast<double>(greatest ? range.max : range.min));
    return x;
  };
  for (const DType a : {DType::kU8, DType::kI8}) {
    for (const DType b : {DType::kU8, DType::kI8}) {
      for (int ends = 0; ends < 16; ++ends) {
        const OpCall call{"int8.matmul",
                          {all(a, {1, kDepth}, ends & 1, ends & 2), all(b, {kDepth, 1}, ends & 4, ends & 8)},
                          {{"out_dtype", DType::kF32}}};
        const int64_t a_less = ((ends & 1) != 0) - ((ends >> 1 & 1) != 0), b_less = (ends >> 2 & 1) - (ends >> 3 & 1);
        const auto found = RunCall(EntryOf(GetParam()), call, DescOf(call, Layout::kRowMajor, Layout::kRowMajor));
        ASSERT_TRUE(found.ok()) << found.status();
        ASSERT_EQ((*found)[0].At(0), static_cast<float>(a_less * b_less * 255 * 255 * kDepth)) << ends;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, VariantTest,
                         ::testing::ValuesIn(kernels::WithEmulated<Variant, linear::Function>(
                             linear::VariantsOfAnyWeight(),
                             {{"emulated avx_vnni", kernels::Isa::kAvxVnni, linear::avx_vnni_emulated::Run},
                              {"emulated avx512_vnni", kernels::Isa::kAvx512Vnni, linear::avx512_vnni_emulated::Run},
                              {"emulated amx", kernels::Isa::kAmx, linear::amx_emulated::Run}})),
                         kernels::VariantName());

TEST(Create, Declines) {
  KernelDesc desc;
  desc.op = "int8.matmul";
  desc.inputs = {kernels::Codes(DType::kU8, {2, 3}, 0.1f, 3), kernels::Codes(DType::kI8, {3, 4}, 0.1f, 3)};
  desc.outputs = {kernels::Floats({2, 4})};
  const auto message = [](const KernelDesc& wrong) { return std::string(Create(wrong).status().message()); };
  EXPECT_EQ(message(desc), "");
  KernelDesc wrong = desc;
  wrong.outputs[0].shape = {2, 5};
  EXPECT_THAT(message(wrong), HasSubstr("matmul of u8[2,3]<scale=0.1, zp=3> and i8[3,4]<scale=0.1, zp=3> to f32[2,5]"));
  wrong = desc;
  wrong.inputs[1] = kernels::Floats({3, 4});
  EXPECT_THAT(message(wrong), HasSubstr("other"));
  wrong = desc;
  wrong.inputs = {kernels::Codes(DType::kU8, {2, 33026}, 0.1f, 3), kernels::Codes(DType::kI8, {33026, 4}, 0.1f, 3)};
  EXPECT_THAT(message(wrong), HasSubstr("sums of 33026 products may overflow 32 bits, wanted at most 33025"));
  wrong = desc;
  wrong.inputs[0]->quant = wrong.inputs[1]->quant = PerTensor(1e-30f);
  EXPECT_EQ(Create(wrong).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace fuselage::int8::matmul
