#include "kernels/int8/lookup/lookup.h"

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

TEST(Lookup, IsTheSameOnAnyNumberOfThreads) {
  kernels::ExpectSameOnAnyThreads(Create, Desc({2, 3, 101, 103}, 3));
}

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
