#include "kernels/int8/avg_pool2d/avg_pool2d.h"

#include <algorithm>
#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"
#include "kernels/core/testing/variant_test.h"
#include "kernels/int8/avg_pool2d/avg_pool2d_cases.h"

namespace fuselage::int8::avg_pool2d {
namespace {

using kernels::GuardedMemory;
using kernels::Index;
using kernels::Isa;
using ::testing::HasSubstr;

// Sums in integers, counts taps one by one, rounds in double.
TEST(Scalar, IsTheMeanOfTheWindow) {
  for (const KernelDesc& desc : Descs()) {
    const auto kernel = Create(desc);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    const TensorType &tx = desc.input(0), &ty = desc.output();
    const bool global = desc.op == "int8.global_avg_pool";
    const Ints size = global ? Ints{tx.shape[2], tx.shape[3]} : desc.GetInts("kernel_size");
    const Ints stride = global ? Ints{1, 1} : desc.GetInts("stride");
    const Ints pad = global ? Ints{0, 0, 0, 0} : desc.GetInts("padding");
    const bool include = !global && desc.GetBool("count_include_pad");
    const Tensor x = SeededTensor(tx, 7);
    const absl::StatusOr<Tensor> y = kernels::RunKernel(**kernel, {&x});
    ASSERT_TRUE(y.ok()) << y.status();
    const IntegerRange range = RangeOf(ty.dtype);
    for (int64_t i = 0; i < ty.num_elements(); ++i) {
      const int64_t w = i % ty.shape[3], h = i / ty.shape[3] % ty.shape[2];
      const int64_t c = i / (ty.shape[3] * ty.shape[2]) % ty.shape[1],
                    n = i / (ty.shape[3] * ty.shape[2] * ty.shape[1]);
      int64_t sum = 0, count = 0;
      for (int64_t in_y = h * stride[0] - pad[0]; in_y < h * stride[0] - pad[0] + size[0]; ++in_y) {
        for (int64_t in_x = w * stride[1] - pad[1]; in_x < w * stride[1] - pad[1] + size[1]; ++in_x) {
          if (in_y >= tx.shape[2] + pad[2] || in_x >= tx.shape[3] + pad[3]) continue;
          const bool inside = in_y >= 0 && in_y < tx.shape[2] && in_x >= 0 && in_x < tx.shape[3];
          count += inside || include;
          if (inside) sum += static_cast<int64_t>(x.At(Index(tx, n, c, in_y, in_x))) - tx.quant->zero_point();
        }
      }
      const float m = count == 0 ? 0 : tx.quant->scale() / (ty.quant->scale() * static_cast<float>(count));
      const double q = std::nearbyint(double{static_cast<float>(sum) * m}) + ty.quant->zero_point();
      const double wanted = std::min(std::max(q, double(range.min)), double(range.max));
      ASSERT_EQ(y->At(Index(ty, n, c, h, w)), wanted) << ToString(tx) << " " << ToString(ty) << " " << i;
      if (count > 0 && wanted == q) {  // And the value is the mean, to half a step.
        const double mean = double{tx.quant->scale()} * static_cast<double>(sum) / static_cast<double>(count);
        ASSERT_NEAR(ty.quant->scale() * (q - ty.quant->zero_point()), mean, 0.50001 * ty.quant->scale());
      }
    }
  }
}

using VariantTest = kernels::VariantTest<Variant>;

TEST_P(VariantTest, EqualsScalar) {
  for (const KernelDesc& desc : Descs()) {
    for (const int misalignment : {0, 5}) {
      const Params params = *MakeParams(desc);
      const int64_t rows = params.window.batch * params.window.axes[0].out;
      GuardedMemory x(desc.input(0).byte_size(), misalignment), wanted(desc.output().byte_size());
      GuardedMemory found(wanted.size(), misalignment);
      x.FillRandom(11);
      scalar::Run(params, x.data(), wanted.data(), 0, rows);
      GetParam().run(params, x.data(), found.data(), 0, rows);
      ASSERT_TRUE(std::equal(wanted.data(), wanted.data() + wanted.size(), found.data())) << ToString(desc.input(0));
      ASSERT_TRUE(found.guards_intact()) << ToString(desc.input(0));
    }
  }
}

TEST_P(VariantTest, EqualsScalarForAnyNumberOfChannels) {
  for (int64_t channels = 1; channels <= 140; ++channels) {
    const Case c = {{1, channels, 3, 3}, {1, channels, 2, 2}, {2, 2}, {1, 1}, {0, 0, 0, 0}};
    const Params params = *MakeParams(Desc(c, DType::kU8, 9, DType::kI8, 99, false));
    GuardedMemory x(9 * channels), wanted(4 * channels), found(4 * channels);
    x.FillRandom(static_cast<uint32_t>(channels));
    scalar::Run(params, x.data(), wanted.data(), 0, 2);
    GetParam().run(params, x.data(), found.data(), 0, 2);
    ASSERT_TRUE(std::equal(wanted.data(), wanted.data() + wanted.size(), found.data())) << channels;
    ASSERT_TRUE(found.guards_intact()) << channels;
  }
}

INSTANTIATE_TEST_SUITE_P(All, VariantTest,
                         ::testing::ValuesIn(kernels::WithEmulated(Variants(), avx512_vnni_emulated::Run)),
                         kernels::VariantName());

TEST(Kernel, IsTheSameOnAnyNumberOfThreads) {
  const Case c = {{3, 40, 32, 32}, {3, 40, 16, 16}, {3, 3}, {2, 2}, {1, 1, 1, 1}};
  const KernelDesc desc = Desc(c, DType::kU8, 4, DType::kU8, 10, true);
  kernels::ExpectSameOnAnyThreads(Create, desc);
}

TEST(Kernel, ReadsPlacedTensorsAndWritesEvenOnes) {
  for (KernelDesc desc : Descs()) {
    const Tensor x = SeededTensor(desc.input(0), 9);
    const absl::StatusOr<Tensor> wanted = kernels::RunKernel(**Create(desc), {&x});
    ASSERT_TRUE(wanted.ok()) << wanted.status();
    desc.isa = kernels::BestIsa();
    desc.input_placements = {{kernels::Blocking::kNone, 1, static_cast<int>(desc.input(0).shape[1]) + 3}};
    desc.output_placement.pixel_bytes = static_cast<int>(desc.input(0).shape[1]) + 7;
    const auto kernel = Create(desc);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    const absl::StatusOr<Tensor> found = kernels::RunPlacedKernel(**kernel, desc, {&x});
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_TRUE(found->SameBytes(*wanted)) << ToString(desc.input(0));
  }
}

TEST(Create, Declines) {
  KernelDesc halo = Desc(kCases[0], DType::kU8, 0, DType::kU8, 0, false);
  halo.output_placement.halo = 1;
  EXPECT_EQ(Create(halo).status().code(), absl::StatusCode::kUnimplemented);

  const Case large = {{1, 1, 3000, 3000}, {1, 1, 1, 1}, {}, {}, {}, false, true};
  const absl::Status overflow = Create(Desc(large, DType::kU8, 0, DType::kU8, 0, false)).status();
  EXPECT_EQ(overflow.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(overflow.message()), HasSubstr("9000000 taps"));
  const absl::Status scale = Create(Desc(kCases[0], DType::kU8, 0, DType::kU8, 0, false, 1e37f)).status();
  EXPECT_EQ(scale.code(), absl::StatusCode::kFailedPrecondition) << scale;
  Case wrong = kCases[0];
  wrong.output[2] = 2;
  EXPECT_EQ(Create(Desc(wrong, DType::kU8, 0, DType::kU8, 0, false)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace fuselage::int8::avg_pool2d
