#include "kernels/int8/lookup/lookup.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"
#include "kernels/core/testing/variant_test.h"
#include "kernels/int8/lookup/lookup_cases.h"

namespace fuselage::int8::lookup {
namespace {

absl::StatusOr<Tensor> Found(const KernelDesc& desc, const Tensor& x) {
  ASSIGN_OR_RETURN(const auto kernel, Create(desc));
  return kernels::RunKernel(*kernel, {&x});
}

TEST(Lookup, TakesEachByteToItsChannelsCode) {
  for (const KernelDesc& desc : Descs()) {
    const TensorType &from = desc.input(0), &to = desc.output();
    const Tensor x = SeededTensor(from, 3), &table = *desc.ParameterOrNull("table");
    const absl::StatusOr<Tensor> y = Found(desc, x);
    ASSERT_TRUE(y.ok()) << y.status() << ToString(from);
    const bool image = from.rank() == 4;
    const int64_t channels = from.rank() > 1 ? from.shape[1] : 1, inner = image ? from.shape[2] * from.shape[3] : 1;
    for (int64_t i = 0; i < x.num_elements(); ++i) {
      const int64_t n = i / inner / channels, c = i / inner % channels, h = image ? i % inner / from.shape[3] : 0;
      const int64_t w = image ? i % from.shape[3] : 0;
      const auto byte = static_cast<int64_t>(x.At(image ? kernels::Index(from, n, c, h, w) : i));
      ASSERT_EQ(y->At(image ? kernels::Index(to, n, c, h, w) : i), table.At(c % table.dim(0) * 256 + byte))
          << ToString(from) << " to " << ToString(to) << ": " << i;
    }
  }
}

TEST(Lookup, SignedCodesAreTheirBytes) {
  KernelDesc desc = Desc({2, 3, 4, 4}, 1);
  const Tensor bytes = SeededTensor(desc.input(0), 3);
  const absl::StatusOr<Tensor> wanted = Found(desc, bytes);
  desc.inputs[0]->dtype = DType::kI8;
  desc.inputs[0]->quant = PerTensor(0.5f, 3);
  Tensor codes(desc.input(0));
  std::memcpy(codes.raw_data(), bytes.raw_data(), bytes.byte_size());
  const absl::StatusOr<Tensor> found = Found(desc, codes);
  ASSERT_TRUE(wanted.ok() && found.ok()) << found.status();
  EXPECT_TRUE(found->SameBytes(*wanted));
}

using VariantTest = kernels::VariantTest<Variant>;

// In parts, too, across images.
TEST_P(VariantTest, EqualsScalar) {
  std::vector<KernelDesc> descs = Descs();
  for (const int64_t channels : {1, 3, 4}) {
    for (const int64_t width : {31, 64, 97}) {
      for (const Layout layout : {Layout::kRowMajor, Layout::kNhwc}) {
        descs.push_back(Desc({2, channels, 2, width}, channels, layout));
        descs.push_back(Desc({2, channels, 2, width}, 1, layout));
      }
      descs.push_back(Desc({2, channels, 2, width}, channels, Layout::kRowMajor, Layout::kRowMajor));
    }
  }
  for (const KernelDesc& desc : descs) {
    const Params params = *MakeParams(desc);
    const auto* tables = static_cast<const uint8_t*>(desc.ParameterOrNull("table")->raw_data());
    const int64_t n = desc.input(0).num_elements(), pixels = params.images * params.pixels;
    kernels::GuardedMemory x(n, 5), wanted(n), found(n, 3);
    x.FillRandom(7);
    scalar::Run(params, tables, x.data(), wanted.data(), 0, pixels);
    for (const int64_t part : {pixels, int64_t{37}, int64_t{200}}) {
      std::fill_n(found.data(), n, 0);
      for (int64_t begin = 0; begin < pixels; begin += part) {
        GetParam().run(params, tables, x.data(), found.data(), begin, std::min(pixels, begin + part));
      }
      ASSERT_TRUE(std::equal(wanted.data(), wanted.data() + n, found.data())) << ToString(desc.input(0)) << " " << part;
      ASSERT_TRUE(found.guards_intact()) << ToString(desc.input(0));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, VariantTest,
                         ::testing::ValuesIn(kernels::WithEmulated(Variants(), avx512_vnni_emulated::Run)),
                         kernels::VariantName());

TEST(Lookup, IsTheSameOnAnyNumberOfThreads) { kernels::ExpectSameOnAnyThreads(Create, Desc({2, 3, 101, 103}, 3)); }

TEST(Lookup, WritesPlacedImages) {
  using kernels::Blocking;
  for (const kernels::Placement& placement :
       {kernels::Placement{Blocking::kNone, 1, 4}, kernels::Placement{Blocking::kSpaceToDepth, 2, 16}}) {
    for (const Layout layout : {Layout::kRowMajor, Layout::kNhwc}) {
      KernelDesc desc = Desc({2, 3, 7, 9}, 3, layout);
      const Tensor x = SeededTensor(desc.input(0), 4);
      const absl::StatusOr<Tensor> wanted = Found(desc, x);
      ASSERT_TRUE(wanted.ok()) << wanted.status();
      desc.output_placement = placement;
      const auto kernel = Create(desc);
      ASSERT_TRUE(kernel.ok()) << kernel.status();
      const absl::StatusOr<Tensor> found = kernels::RunPlacedKernel(**kernel, desc, {&x});
      ASSERT_TRUE(found.ok()) << found.status();
      EXPECT_TRUE(found->SameBytes(*wanted)) << kernels::PlacementText(placement);
    }
  }
}

TEST(Lookup, Declines) {
  const auto code = [](const KernelDesc& desc) { return Create(desc).status().code(); };
  EXPECT_EQ(code(Desc({2, 3, 4, 4}, 2)), absl::StatusCode::kInvalidArgument);
  KernelDesc planes = Desc({2, 3, 4, 4}, 3), floats = planes, absent = planes;
  planes.output_placement.blocking = kernels::Blocking::kPhasePlanes;
  EXPECT_EQ(code(planes), absl::StatusCode::kUnimplemented);
  floats.inputs[0]->dtype = DType::kF32;
  EXPECT_EQ(code(floats), absl::StatusCode::kUnimplemented);
  absent.parameters.clear();
  EXPECT_EQ(code(absent), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace fuselage::int8::lookup
