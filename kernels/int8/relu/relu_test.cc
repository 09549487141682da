#include "kernels/int8/relu/relu.h"

#include <algorithm>
#include <cmath>

#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"
#include "kernels/core/testing/variant_test.h"
#include "kernels/int8/relu/relu_cases.h"

namespace fuselage::int8::relu {
namespace {

using kernels::GuardedMemory;
using kernels::Isa;

int Value(uint8_t byte, DType dtype) { return dtype == DType::kI8 ? static_cast<int8_t>(byte) : byte; }

TEST(Scalar, FollowsTheFormulaOnEveryCode) {
  uint8_t x[256], y[256];
  for (int i = 0; i < 256; ++i) x[i] = static_cast<uint8_t>(i);
  for (const KernelDesc& desc : Descs()) {
    const absl::StatusOr<Params> params = MakeParams(desc);
    ASSERT_TRUE(params.ok()) << params.status();
    scalar::Run(*params, x, y, 256);
    const TensorType &tx = desc.input(0), &ty = desc.output();
    const int zy = ty.quant->zero_point(), hi = ty.dtype == DType::kI8 ? 127 : 255;
    for (int i = 0; i < 256; ++i) {
      const float v =
          static_cast<float>(Value(x[i], tx.dtype) - tx.quant->zero_point()) * (tx.quant->scale() / ty.quant->scale());
      const int wanted = static_cast<int>(std::min(std::max(std::nearbyint(double{v}) + zy, double(zy)), double(hi)));
      ASSERT_EQ(Value(y[i], ty.dtype), wanted) << i << " " << ToString(tx) << " " << ToString(ty);
    }
  }
}

using VariantTest = kernels::VariantTest<Variant>;

TEST_P(VariantTest, EqualsScalarOnEveryCode) {
  uint8_t x[256], wanted[256], found[256];
  for (int i = 0; i < 256; ++i) x[i] = static_cast<uint8_t>(i);
  for (const KernelDesc& desc : Descs()) {
    const Params params = *MakeParams(desc);
    scalar::Run(params, x, wanted, 256);
    GetParam().run(params, x, found, 256);
    ASSERT_TRUE(std::equal(wanted, wanted + 256, found)) << ToString(desc.input(0)) << " " << ToString(desc.output());
  }
}

TEST_P(VariantTest, EqualsScalarAtAnyLengthAndAlignment) {
  for (const float scale : {0.5f, 0.3f}) {
    const Params params = *MakeParams(Desc(Codes(DType::kI8, {1}, 0.5f, 3), Codes(DType::kI8, {1}, scale, 3)));
    ASSERT_EQ(params.same, scale == 0.5f);
    for (const int n : {0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 1000}) {
      for (const int misalignment : {0, 1, 13}) {
        GuardedMemory x(n, misalignment), wanted(n), found(n, 3 * misalignment);
        x.FillRandom(n);
        scalar::Run(params, x.data(), wanted.data(), n);
        GetParam().run(params, x.data(), found.data(), n);
        ASSERT_TRUE(std::equal(wanted.data(), wanted.data() + n, found.data())) << n;
        ASSERT_TRUE(found.guards_intact()) << n;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, VariantTest,
                         ::testing::ValuesIn(kernels::WithEmulated(Variants(), avx512_vnni_emulated::Run)),
                         kernels::VariantName());

TEST(Kernel, IsTheSameOnAnyNumberOfThreads) {
  const Shape shape = {1, 7, 101, 103};
  const KernelDesc desc =
      Desc(Codes(DType::kU8, shape, 0.02f, 113, Layout::kNhwc), Codes(DType::kU8, shape, 0.01f, 0, Layout::kNhwc));
  kernels::ExpectSameOnAnyThreads(Create, desc);
}

TEST(Create, Declines) {
  const TensorType x = Codes(DType::kU8, {2, 3}, 0.5f, 1);
  EXPECT_EQ(Create(Desc(x, Codes(DType::kU8, {3, 2}, 0.5f, 1))).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Create(Desc(x, kernels::Floats({2, 3}))).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(Create(Desc(Codes(DType::kU8, {2}, 1e-20f, 0), Codes(DType::kU8, {2}, 1e20f, 0))).status().code(),
            absl::StatusCode::kFailedPrecondition);
  KernelDesc absent = Desc(x, x);
  absent.inputs[0].reset();
  EXPECT_EQ(Create(absent).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace fuselage::int8::relu
