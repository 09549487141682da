#include "kernels/int8/dequantize/dequantize.h"

#include <algorithm>
#include <cstring>

#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"
#include "kernels/core/testing/variant_test.h"
#include "kernels/int8/dequantize/dequantize_cases.h"

namespace fuselage::int8::dequantize {
namespace {

using kernels::GuardedMemory;
using kernels::Index;
using kernels::Isa;

TEST(Scalar, IsScaleTimesDistanceInEitherLayout) {
  const Shape shape = {2, 5, 3, 43};
  for (const DType dtype : {DType::kU8, DType::kI8}) {
    const int32_t least = static_cast<int32_t>(RangeOf(dtype).min);
    for (const int32_t zero_point : {least, least + 100, least + 255}) {
      for (const Layout layout : {Layout::kRowMajor, Layout::kNhwc}) {
        const TensorType from = Codes(dtype, shape, 0.0123f, zero_point, Layout::kNhwc), to = Floats(shape, layout);
        const auto kernel = Create(Desc(from, to));
        ASSERT_TRUE(kernel.ok()) << kernel.status();
        Tensor x(from);
        for (int64_t i = 0; i < x.num_elements(); ++i) x.Set(i, least + i % 256);
        const absl::StatusOr<Tensor> y = kernels::RunKernel(**kernel, {&x});
        ASSERT_TRUE(y.ok()) << y.status();
        for (int64_t i = 0; i < x.num_elements(); ++i) {
          const int64_t n = i / 645, c = i / 129 % 5, h = i / 43 % 3, w = i % 43;
          const float wanted = 0.0123f * static_cast<float>(x.At(Index(from, n, c, h, w)) - zero_point);
          ASSERT_EQ(y->At(Index(to, n, c, h, w)), wanted);
        }
      }
    }
  }
}

TEST(Kernel, ReadsChannelsOfAWiderTensor) {
  for (const int64_t channels : {1, 5, 70}) {
    for (const Layout layout : {Layout::kRowMajor, Layout::kNhwc}) {
      const Shape shape = {2, channels, 3, 43};
      KernelDesc desc = Desc(Codes(DType::kI8, shape, 0.0123f, -9, Layout::kNhwc), Floats(shape, layout));
      const Tensor x = SeededTensor(desc.input(0), 4);
      const absl::StatusOr<Tensor> wanted = kernels::RunKernel(**Create(desc), {&x});
      ASSERT_TRUE(wanted.ok()) << wanted.status();
      desc.isa = kernels::BestIsa();
      desc.input_placements = {{kernels::Blocking::kNone, 0, static_cast<int>(channels) + 30}};
      const auto kernel = Create(desc);
      ASSERT_TRUE(kernel.ok()) << kernel.status();
      kernels::TestThreads threads(3);
      const absl::StatusOr<Tensor> found = kernels::RunPlacedKernel(**kernel, desc, {&x}, &threads);
      ASSERT_TRUE(found.ok()) << found.status();
      EXPECT_TRUE(found->SameBytes(*wanted)) << ToString(shape);
    }
  }
}

using VariantTest = kernels::VariantTest<Variant>;

TEST_P(VariantTest, EqualsScalarOnAnyShape) {
  for (const int64_t channels : {1, 2, 3, 16, 33}) {
    for (const int64_t width : {1, 7, 15, 16, 31, 32, 33, 64, 65, 200}) {
      for (const DType dtype : {DType::kU8, DType::kI8}) {
        const Shape shape = {2, channels, 2, width};
        const Params params = *MakeParams(Desc(Codes(dtype, shape, 0.0123f, 77), Floats(shape)));
        const int64_t n = 4 * channels * width, pixels = params.images * params.pixels;
        GuardedMemory x(n, 5), wanted(4 * n), found(4 * n, 12), part(4 * n);
        x.FillRandom(static_cast<uint32_t>(n));
        scalar::Run(params, x.data(), wanted.as<float>(), 0, pixels);
        GetParam().run(params, x.data(), found.as<float>(), 0, pixels);
        ASSERT_EQ(std::memcmp(wanted.data(), found.data(), 4 * n), 0) << ToString(shape);
        ASSERT_TRUE(found.guards_intact()) << ToString(shape);
        for (int64_t pixel = 0; pixel < pixels; pixel += 37) {  // In parts, across images.
          GetParam().run(params, x.data(), part.as<float>(), pixel, std::min(pixels, pixel + 37));
        }
        ASSERT_EQ(std::memcmp(wanted.data(), part.data(), 4 * n), 0) << ToString(shape);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, VariantTest,
                         ::testing::ValuesIn(kernels::WithEmulated(Variants(), avx512_vnni_emulated::Run)),
                         kernels::VariantName());

TEST(Kernel, IsTheSameOnAnyNumberOfThreads) {
  const Shape shape = {2, 3, 101, 103};
  const KernelDesc desc = Desc(Codes(DType::kU8, shape, 0.01f, 99, Layout::kNhwc), Floats(shape));
  kernels::ExpectSameOnAnyThreads(Create, desc);
}

TEST(Create, Declines) {
  EXPECT_EQ(Create(Desc(Floats({2}), Floats({2}))).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(Create(Desc(Codes(DType::kU8, {2}, 1, 0), Codes(DType::kU8, {2}, 1, 0))).status().code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(Create(Desc(Codes(DType::kU8, {2}, 1, 0), Floats({3}))).status().code(),
            absl::StatusCode::kInvalidArgument);
  KernelDesc halo = Desc(Codes(DType::kU8, {1, 2, 3, 4}, 1, 0, Layout::kNhwc), Floats({1, 2, 3, 4}));
  halo.input_placements = {{kernels::Blocking::kNone, 1, 0}};
  EXPECT_EQ(Create(halo).status().code(), absl::StatusCode::kUnimplemented);
  KernelDesc absent = Desc(Codes(DType::kU8, {2}, 1, 0), Floats({2}));
  absent.inputs[0].reset();
  EXPECT_EQ(Create(absent).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace fuselage::int8::dequantize
