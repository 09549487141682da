#include "kernels/int8/max_pool2d/max_pool2d.h"

#include <algorithm>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"
#include "kernels/core/testing/variant_test.h"
#include "kernels/int8/max_pool2d/max_pool2d_cases.h"

namespace fuselage::int8::max_pool2d {
namespace {

using kernels::GuardedMemory;
using kernels::Index;
using kernels::Isa;
using ::testing::HasSubstr;

TEST(Scalar, IsTheLargestValueOfTheWindow) {
  for (const Case& c : kCases) {
    for (const DType dtype : {DType::kU8, DType::kI8}) {
      const KernelDesc desc = Desc(c, dtype);
      const auto kernel = Create(desc);
      ASSERT_TRUE(kernel.ok()) << kernel.status();
      const Tensor x = SeededTensor(desc.input(0), 7);
      const absl::StatusOr<Tensor> y = kernels::RunKernel(**kernel, {&x});
      ASSERT_TRUE(y.ok()) << y.status();
      for (int64_t n = 0; n < c.output[0]; ++n) {
        for (int64_t ch = 0; ch < c.output[1]; ++ch) {
          for (int64_t h = 0; h < c.output[2]; ++h) {
            for (int64_t w = 0; w < c.output[3]; ++w) {
              double wanted = static_cast<double>(RangeOf(dtype).min);
              for (int64_t i = 0; i < c.kernel[0]; ++i) {
                for (int64_t j = 0; j < c.kernel[1]; ++j) {
                  const int64_t in_y = h * c.stride[0] - c.padding[0] + i * c.dilation[0];
                  const int64_t in_x = w * c.stride[1] - c.padding[1] + j * c.dilation[1];
                  if (in_y < 0 || in_y >= c.input[2] || in_x < 0 || in_x >= c.input[3]) continue;
                  wanted = std::max(wanted, x.At(Index(desc.input(0), n, ch, in_y, in_x)));
                }
              }
              ASSERT_EQ(y->At(Index(desc.output(), n, ch, h, w)), wanted) << ToString(desc.input(0));
            }
          }
        }
      }
    }
  }
}

using VariantTest = kernels::VariantTest<Variant>;

TEST_P(VariantTest, EqualsScalar) {
  for (const Case& c : kCases) {
    for (const DType dtype : {DType::kU8, DType::kI8}) {
      for (const int misalignment : {0, 5}) {
        const KernelDesc desc = Desc(c, dtype);
        const Params params = *MakeParams(desc);
        GuardedMemory x(desc.input(0).byte_size(), misalignment), wanted(desc.output().byte_size());
        GuardedMemory found(wanted.size(), misalignment);
        x.FillRandom(11);
        scalar::Run(params, x.data(), wanted.data(), 0, c.output[0] * c.output[2]);
        GetParam().run(params, x.data(), found.data(), 0, c.output[0] * c.output[2]);
        ASSERT_TRUE(std::equal(wanted.data(), wanted.data() + wanted.size(), found.data())) << ToString(c.input);
        ASSERT_TRUE(found.guards_intact()) << ToString(c.input);
      }
    }
  }
}

TEST_P(VariantTest, EqualsScalarForAnyNumberOfChannels) {
  for (int64_t channels = 1; channels <= 200; ++channels) {
    const Case c = {{1, channels, 3, 3}, {1, channels, 2, 2}, {2, 2}, {1, 1}, {0, 0, 0, 0}, {1, 1}};
    const Params params = *MakeParams(Desc(c, channels % 2 ? DType::kU8 : DType::kI8));
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
  const KernelDesc desc = Desc({{3, 64, 32, 32}, {3, 64, 16, 16}, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}}, DType::kU8);
  kernels::ExpectSameOnAnyThreads(Create, desc);
}

TEST(Kernel, ReadsAndWritesPlacedTensors) {
  for (const Case& c : kCases) {
    KernelDesc desc = Desc(c, DType::kI8);
    const Tensor x = SeededTensor(desc.input(0), 9);
    const absl::StatusOr<Tensor> wanted = kernels::RunKernel(**Create(desc), {&x});
    ASSERT_TRUE(wanted.ok()) << wanted.status();
    desc.isa = kernels::BestIsa();
    for (const int halo : {0, 1, 2}) {
      const int pixel_bytes = static_cast<int>(c.input[1]) + 3;
      desc.input_placements = {{kernels::Blocking::kNone, halo, pixel_bytes}};
      desc.output_placement = {kernels::Blocking::kNone, 2 - halo, halo == 2 ? pixel_bytes : 0};
      const auto kernel = Create(desc);
      ASSERT_TRUE(kernel.ok()) << kernel.status();
      kernels::TestThreads threads(2);
      const absl::StatusOr<Tensor> found = kernels::RunPlacedKernel(**kernel, desc, {&x}, &threads);
      ASSERT_TRUE(found.ok()) << found.status();
      EXPECT_TRUE(found->SameBytes(*wanted)) << halo;
    }
  }
}

TEST(Create, SaysWhatIsWrong) {
  const auto message = [](const KernelDesc& desc) { return std::string(Create(desc).status().message()); };
  Case c = kCases[0];
  c.output[2] = 7;
  EXPECT_THAT(message(Desc(c, DType::kU8)), HasSubstr("spatial axis 0 of the output has 7 elements, wanted 6"));
  c = kCases[0];
  c.kernel = {15, 3};
  EXPECT_THAT(message(Desc(c, DType::kU8)), HasSubstr("the window spans 15 elements, more than the padded input's 14"));
  c = kCases[0];
  c.stride = {2};
  EXPECT_THAT(message(Desc(c, DType::kU8)), HasSubstr("stride is [2], wanted 2 values"));
  c = kCases[0];
  c.stride[1] = int64_t{1} << 31;
  EXPECT_THAT(message(Desc(c, DType::kU8)), HasSubstr("2147483648], wanted 2 values in [1, 2^31)"));
  KernelDesc desc = Desc(kCases[0], DType::kU8);
  desc.outputs[0].quant->scales[0] = 0.2f;
  EXPECT_THAT(message(desc), HasSubstr("wanted the same element type, scale and zero point"));
}

}  // namespace
}  // namespace fuselage::int8::max_pool2d
