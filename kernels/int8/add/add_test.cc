#include "kernels/int8/add/add.h"

#include <algorithm>
#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"
#include "kernels/core/testing/variant_test.h"
#include "kernels/int8/add/add_cases.h"

namespace fuselage::int8::add {
namespace {

using kernels::GuardedMemory;
using kernels::Isa;
using ::testing::HasSubstr;

// Every pair of codes.
struct AllPairs {
  GuardedMemory a{65536}, b{65536};
  AllPairs() {
    for (int i = 0; i < 65536; ++i) {
      a.data()[i] = static_cast<uint8_t>(i >> 8);
      b.data()[i] = static_cast<uint8_t>(i);
    }
  }
};

int Value(uint8_t byte, DType dtype) { return dtype == DType::kI8 ? static_cast<int8_t>(byte) : byte; }

// The formula in the codes' own types, rounding by the current mode: half to even.
TEST(Scalar, FollowsTheFormula) {
  AllPairs x;
  GuardedMemory y(65536);
  for (const KernelDesc& desc : Descs()) {
    const absl::StatusOr<Params> params = MakeParams(desc);
    ASSERT_TRUE(params.ok()) << params.status();
    scalar::Run(*params, x.a.data(), x.b.data(), y.data(), 65536);
    const TensorType &ta = desc.input(0), &tb = desc.input(1), &ty = desc.output();
    const float ma = ta.quant->scale() / ty.quant->scale(), mb = tb.quant->scale() / ty.quant->scale();
    const int zy = ty.quant->zero_point(), lo = ty.dtype == DType::kI8 ? -128 : 0;
    const int floor = desc.GetString("activation") == "relu" ? std::max(lo, zy) : lo;
    for (int i = 0; i < 65536; ++i) {
      const float first = static_cast<float>(Value(x.a.data()[i], ta.dtype) - ta.quant->zero_point()) * ma;
      const float v = std::fma(static_cast<float>(Value(x.b.data()[i], tb.dtype) - tb.quant->zero_point()), mb, first);
      const double q = std::nearbyint(static_cast<double>(v)) + zy;
      const int wanted = static_cast<int>(std::min(std::max(q, static_cast<double>(floor)), lo + 255.0));
      ASSERT_EQ(Value(y.data()[i], ty.dtype), wanted) << i << " " << ToString(ta) << ToString(tb) << ToString(ty);
    }
  }
}

using VariantTest = kernels::VariantTest<Variant>;

TEST_P(VariantTest, EqualsScalarOnAllPairsOfCodes) {
  AllPairs x;
  GuardedMemory wanted(65536), found(65536);
  for (const KernelDesc& desc : Descs()) {
    const Params params = *MakeParams(desc);
    scalar::Run(params, x.a.data(), x.b.data(), wanted.data(), 65536);
    GetParam().run(params, x.a.data(), x.b.data(), found.data(), 65536);
    ASSERT_TRUE(std::equal(wanted.data(), wanted.data() + 65536, found.data()))
        << ToString(desc.input(0)) << ToString(desc.input(1)) << ToString(desc.output());
  }
}

TEST_P(VariantTest, EqualsScalarAtAnyLengthAndAlignment) {
  const Params params = *MakeParams(Descs()[1]);
  for (const int n : {0, 1, 7, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 1000}) {
    for (const int misalignment : {0, 1, 13}) {
      GuardedMemory a(n, misalignment), b(n, 2 * misalignment), wanted(n), found(n, misalignment);
      a.FillRandom(n);
      b.FillRandom(n + 1);
      scalar::Run(params, a.data(), b.data(), wanted.data(), n);
      GetParam().run(params, a.data(), b.data(), found.data(), n);
      ASSERT_TRUE(std::equal(wanted.data(), wanted.data() + n, found.data())) << n;
      ASSERT_TRUE(found.guards_intact()) << n;
      GetParam().run(params, a.data(), b.data(), a.data(), n);  // In place.
      ASSERT_TRUE(std::equal(wanted.data(), wanted.data() + n, a.data())) << n;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, VariantTest,
                         ::testing::ValuesIn(kernels::WithEmulated(Variants(), avx512_vnni_emulated::Run)),
                         kernels::VariantName());

TEST(Kernel, IsTheSameOnAnyNumberOfThreads) {
  const Shape shape = {1, 5, 123, 97};
  const KernelDesc desc =
      Desc(Codes(DType::kU8, shape, 0.02f, 3, Layout::kNhwc), Codes(DType::kI8, shape, 0.03f, -5, Layout::kNhwc),
           Codes(DType::kU8, shape, 0.04f, 0, Layout::kNhwc), "relu");
  EXPECT_EQ((*Create(desc))->output_scale(), 0.04f);
  kernels::ExpectSameOnAnyThreads(Create, desc);
}

TEST(Kernel, RepeatsASmallerOperand) {
  for (KernelDesc desc : RepeatingDescs()) {
    desc.isa = kernels::BestIsa();
    const auto run = [&](const Tensor& a, const Tensor& b) {
      desc.inputs = {a.type(), b.type()};
      kernels::TestThreads parallel(3);
      return *kernels::RunKernel(**Create(desc), {&a, &b}, &parallel);
    };
    const auto expanded = [&](const Tensor& operand) {
      TensorType type = operand.type();
      type.shape = desc.output().shape;
      Tensor result(type);
      for (int64_t i = 0; i < result.num_elements(); ++i) {
        static_cast<uint8_t*>(result.raw_data())[i] =
            static_cast<const uint8_t*>(operand.raw_data())[i % operand.num_elements()];
      }
      return result;
    };
    const Tensor a = SeededTensor(desc.input(0), 1), b = SeededTensor(desc.input(1), 2);
    EXPECT_TRUE(run(a, b).SameBytes(run(expanded(a), expanded(b)))) << ToString(a.type()) << ToString(b.type());
  }
}

// In both layouts.
TEST(Kernel, Broadcasts) {
  kernels::KernelRegistry registry;
  Register(registry);
  for (const kernels::OpCall& call : BroadcastingCalls()) {
    EXPECT_EQ(DifferenceFromReference(registry, call), "")
        << ToString(call.operands[0]->type()) << " " << ToString(call.operands[1]->type());
  }
}

TEST(Create, Declines) {
  const TensorType x = Codes(DType::kU8, {2, 3}, 0.5f, 1);
  const auto error = [](const KernelDesc& desc) { return Create(desc).status(); };
  EXPECT_TRUE(error(Desc(x, Codes(DType::kU8, {2, 1}, 0.5f, 1), x)).ok());
  const auto nhwc = [](Shape shape) { return Codes(DType::kU8, std::move(shape), 0.5f, 1, Layout::kNhwc); };
  const TensorType image = nhwc({2, 3, 4, 5});
  EXPECT_TRUE(error(Desc(image, nhwc({1, 3, 4, 5}), image)).ok());
  EXPECT_EQ(error(Desc(image, Codes(DType::kU8, {1, 1, 4, 5}, 0.5f, 1), image)).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(error(Desc(x, Codes(DType::kU8, {1, 2, 3}, 0.5f, 1), x)).code(), absl::StatusCode::kInvalidArgument);
  KernelDesc desc = Desc(x, x, x);
  desc.attributes.find("alpha")->second = Attribute(2.0);
  EXPECT_EQ(error(desc).code(), absl::StatusCode::kUnimplemented);
  desc = Desc(x, x, x);
  desc.inputs[1].reset();
  EXPECT_EQ(error(desc).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(error(Desc(x, x, x, "tanh")).code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(error(Desc(x, x, x, "tan")).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(error(Desc(x, x, kernels::Floats({2, 3}))).code(), absl::StatusCode::kUnimplemented);
  const absl::Status status = error(Desc(x, Codes(DType::kU8, {2, 3}, 1e-20f, 0), Codes(DType::kU8, {2, 3}, 1e20f, 0)));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("other scale / output scale"));
}

}  // namespace
}  // namespace fuselage::int8::add
