#include "kernels/int8/quantize/quantize.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"
#include "kernels/core/testing/variant_test.h"
#include "kernels/int8/quantize/quantize_cases.h"

namespace fuselage::int8::quantize {
namespace {

using kernels::GuardedMemory;
using kernels::Index;
using kernels::Isa;

TEST(Scalar, DividesRoundsAndClamps) {
  for (const Target& t : kTargets) {
    const std::vector<float> values = Values(t.scale);
    const int64_t n = static_cast<int64_t>(values.size());
    const auto kernel = Create(Desc(Floats({n}), Codes(t.dtype, {n}, t.scale, t.zero_point)));
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    const Tensor x = Tensor::Of<float>({n}, values);
    const absl::StatusOr<Tensor> y = kernels::RunKernel(**kernel, {&x});
    ASSERT_TRUE(y.ok()) << y.status();
    const IntegerRange range = RangeOf(t.dtype);
    for (int64_t i = 0; i < n; ++i) {
      const float v = values[i] / t.scale;
      const double q = (std::isnan(v) ? 0 : std::nearbyint(double{v})) + t.zero_point;
      const double wanted = std::min(std::max(q, double(range.min)), double(range.max));
      ASSERT_EQ(y->At(i), wanted) << values[i] << " / " << t.scale;
    }
  }
}

TEST(Scalar, MovesRowMajorImagesToNhwc) {
  const Shape shape = {2, 5, 3, 4};
  const TensorType to = Codes(DType::kU8, shape, 0.01f, 128, Layout::kNhwc);
  for (const Layout layout : {Layout::kRowMajor, Layout::kNhwc}) {
    const TensorType from = Floats(shape, layout);
    const auto kernel = Create(Desc(from, to));
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    const Tensor x = SeededTensor(from, 3);
    const absl::StatusOr<Tensor> y = kernels::RunKernel(**kernel, {&x});
    ASSERT_TRUE(y.ok()) << y.status();
    for (int64_t i = 0; i < 120; ++i) {
      const int64_t n = i / 60, c = i / 12 % 5, h = i / 4 % 3, w = i % 4;
      const float v = static_cast<float>(x.At(Index(from, n, c, h, w)));
      const double q = std::nearbyint(double{v / 0.01f}) + 128;
      ASSERT_EQ(y->At(Index(to, n, c, h, w)), std::min(std::max(q, 0.0), 255.0));
    }
  }
}

using VariantTest = kernels::VariantTest<Variant>;

TEST_P(VariantTest, EqualsScalarOnEdgeValues) {
  for (const Target& t : kTargets) {
    const std::vector<float> values = Values(t.scale);
    const int64_t n = static_cast<int64_t>(values.size());
    const Params params = *MakeParams(Desc(Floats({n}), Codes(t.dtype, {n}, t.scale, t.zero_point)));
    GuardedMemory wanted(n), found(n);
    scalar::Run(params, values.data(), wanted.data(), 0, n);
    GetParam().run(params, values.data(), found.data(), 0, n);
    ASSERT_TRUE(std::equal(wanted.data(), wanted.data() + n, found.data())) << t.scale;
  }
}

TEST_P(VariantTest, EqualsScalarOnAnyShape) {
  for (int64_t channels = 1; channels <= 40; ++channels) {
    for (const int64_t width : {1, 7, 15, 16, 31, 32, 33, 63, 64, 65, 200}) {
      const Shape shape = {2, channels, 2, width};
      const Params params = *MakeParams(Desc(Floats(shape), Codes(DType::kI8, shape, 0.01f, -9, Layout::kNhwc)));
      const Tensor values = SeededTensor(Floats(shape), 7);
      const int64_t n = values.num_elements();
      GuardedMemory x(4 * n, 12), wanted(n), found(n, 5);
      std::copy_n(values.data<float>(), n, x.as<float>());
      scalar::Run(params, x.as<float>(), wanted.data(), 0, params.images * params.pixels);
      GetParam().run(params, x.as<float>(), found.data(), 0, params.images * params.pixels);
      ASSERT_TRUE(std::equal(wanted.data(), wanted.data() + n, found.data())) << ToString(shape);
      ASSERT_TRUE(found.guards_intact()) << ToString(shape);
      GuardedMemory part(n);
      for (int64_t pixel = 0; pixel < params.images * params.pixels; pixel += 37) {  // In parts, across images.
        const int64_t end = std::min(params.images * params.pixels, pixel + 37);
        GetParam().run(params, x.as<float>(), part.data(), pixel, end);
      }
      ASSERT_TRUE(std::equal(wanted.data(), wanted.data() + n, part.data())) << ToString(shape);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, VariantTest,
                         ::testing::ValuesIn(kernels::WithEmulated(Variants(), avx512_vnni_emulated::Run)),
                         kernels::VariantName());

TEST(Kernel, IsTheSameOnAnyNumberOfThreads) {
  const Shape shape = {2, 3, 101, 103};
  const KernelDesc desc = Desc(Floats(shape), Codes(DType::kU8, shape, 0.01f, 99, Layout::kNhwc));
  kernels::ExpectSameOnAnyThreads(Create, desc);
}

// Every pixel where its placement says, the zero point around the image, and nothing beyond.
TEST(Kernel, WritesPlacedImages) {
  using kernels::Blocking;
  for (const kernels::Placement& placement :
       {kernels::Placement{Blocking::kNone, 1, 0}, kernels::Placement{Blocking::kNone, 2, 64},
        kernels::Placement{Blocking::kNone, 0, 64}, kernels::Placement{Blocking::kSpaceToDepth, 2, 16},
        kernels::Placement{Blocking::kSpaceToDepth, 1, 0}}) {
    for (const int64_t channels : {1, 3, 4, 5}) {
      if (placement.pixel_bytes == 16 && channels == 5) continue;  // A block has 20 codes.
      for (const int64_t height : {1, 6, 7}) {
        for (const int64_t width : {1, 9, 20}) {
          for (const Layout layout : {Layout::kRowMajor, Layout::kNhwc}) {
            const Shape shape = {2, channels, height, width};
            const TensorType dense = Codes(DType::kI8, shape, 0.01f, -9, Layout::kNhwc);
            KernelDesc desc = Desc(Floats(shape, layout), dense);
            const Tensor x = SeededTensor(desc.input(0), 4);
            const absl::StatusOr<Tensor> wanted = kernels::RunKernel(**Create(desc), {&x});
            ASSERT_TRUE(wanted.ok()) << wanted.status();
            desc.output_placement = placement;
            desc.isa = kernels::BestIsa();
            desc.threads = 3;
            const auto kernel = Create(desc);
            ASSERT_TRUE(kernel.ok()) << kernel.status();
            kernels::TestThreads threads(3);
            const absl::StatusOr<Tensor> found = kernels::RunPlacedKernel(**kernel, desc, {&x}, &threads);
            ASSERT_TRUE(found.ok()) << found.status();
            EXPECT_TRUE(found->SameBytes(*wanted)) << kernels::PlacementText(placement) << ToString(shape);
          }
        }
      }
    }
  }
}

TEST(Create, Declines) {
  KernelDesc planes = Desc(Floats({1, 2, 4, 4}), Codes(DType::kU8, {1, 2, 4, 4}, 1, 0, Layout::kNhwc));
  planes.output_placement.blocking = kernels::Blocking::kPhasePlanes;
  EXPECT_EQ(Create(planes).status().code(), absl::StatusCode::kUnimplemented);

  EXPECT_EQ(Create(Desc(Codes(DType::kU8, {2}, 1, 0), Codes(DType::kU8, {2}, 1, 0))).status().code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(Create(Desc(Floats({2}), Floats({2}))).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(Create(Desc(Floats({2}), Codes(DType::kU8, {3}, 1, 0))).status().code(),
            absl::StatusCode::kInvalidArgument);
  KernelDesc absent = Desc(Floats({2}), Codes(DType::kU8, {2}, 1, 0));
  absent.inputs[0].reset();
  EXPECT_EQ(Create(absent).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace fuselage::int8::quantize
