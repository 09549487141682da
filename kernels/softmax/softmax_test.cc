#include "kernels/softmax/softmax.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"
#include "kernels/core/testing/variant_test.h"
#include "kernels/core/transpose.h"
#include "kernels/testing/reference.h"

namespace fuselage::softmax {
namespace {

using kernels::GuardedMemory;
using kernels::KernelDesc;

using VariantTest = kernels::VariantTest<Variant>;

// Numbers of all magnitudes, and columns with infinities and NaN.
TEST_P(VariantTest, HasTheBitsOfScalar) {
  for (const int64_t columns : std::vector<int64_t>{1, 7, 8, 9, 15, 16, 17, 33, kMostColumns}) {
    for (const int64_t length : {1, 2, 16}) {
      const int64_t stride = columns + 3, count = (length - 1) * stride + columns;
      GuardedMemory x(4 * count, 4), wanted(4 * count), found(4 * count, 8);
      const float special[] = {INFINITY, -INFINITY, NAN, 0.0f, -0.0f, 1e30f};
      for (int64_t i = 0; i < count; ++i) {
        x.as<float>()[i] = std::ldexp(static_cast<float>(i % 17 - 8) + 0.37f, static_cast<int>(i % 12) - 8);
        if (i % 29 == 5) x.as<float>()[i] = special[i / 29 % 6];
        wanted.as<float>()[i] = found.as<float>()[i] = -1;
      }
      scalar::Run({length, stride, columns}, x.as<float>(), wanted.as<float>());
      GetParam().run({length, stride, columns}, x.as<float>(), found.as<float>());
      for (int64_t i = 0; i < count; ++i) {
        const float w = wanted.as<float>()[i], f = found.as<float>()[i];
        ASSERT_TRUE(std::memcmp(&w, &f, 4) == 0 || (std::isnan(w) && std::isnan(f))) << i << ": " << w << ", " << f;
        ASSERT_TRUE(i % stride < columns || f == -1) << "between the columns";
      }
      ASSERT_TRUE(found.guards_intact());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, VariantTest,
                         ::testing::ValuesIn(kernels::WithEmulated(Variants(), avx512_vnni_emulated::Run)),
                         kernels::VariantName());

KernelDesc Desc(Shape shape, int64_t dim) {
  KernelDesc desc;
  desc.op = "softmax";
  desc.inputs = {kernels::Floats(shape)};
  desc.outputs = {kernels::Floats(shape)};
  desc.attributes = {{"dim", Attribute(dim)}};
  return desc;
}

// The definition in double, along every axis.
TEST(Kernel, FollowsTheDefinition) {
  const Shape shape = {3, 5, 7, 300};
  const Tensor x = SeededTensor(kernels::Floats(shape), 1);
  for (int axis = 0; axis < 4; ++axis) {
    const auto kernel = Create(Desc(shape, axis - 4));
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    const absl::StatusOr<Tensor> y = kernels::RunKernel(**kernel, {&x});
    ASSERT_TRUE(y.ok()) << y.status();
    int64_t stride = 1;
    for (int i = axis + 1; i < 4; ++i) stride *= shape[i];
    for (int64_t i = 0; i < x.num_elements(); ++i) {
      const int64_t first = i - i / stride % shape[axis] * stride;
      double sum = 0;
      for (int64_t k = 0; k < shape[axis]; ++k) sum += std::exp(double{x.data<float>()[first + k * stride]});
      ASSERT_NEAR(y->data<float>()[i], std::exp(double{x.data<float>()[i]}) / sum, 1e-6) << i << " along " << axis;
    }
  }
}

// Rows have the bits of the same columns, in blocks that are full and not.
TEST(Kernel, RowsHaveTheBitsOfColumns) {
  for (const int64_t length : {1, 2, 3, 4, 5, 16, 21, 300}) {
    for (const int64_t rows : {0, 1, 3, 255, 256, 257, 1000}) {
      const Tensor x = SeededTensor(kernels::Floats({rows, length}), 1);
      Tensor columns(kernels::Floats({length, rows}));
      kernels::Transpose(rows, length, x.data<float>(), length, columns.data<float>(), rows);
      const auto by_rows = Create(Desc({rows, length}, 1)), by_columns = Create(Desc({length, rows}, 0));
      ASSERT_TRUE(by_rows.ok() && by_columns.ok());
      const absl::StatusOr<Tensor> found = kernels::RunKernel(**by_rows, {&x});
      const absl::StatusOr<Tensor> wanted = kernels::RunKernel(**by_columns, {&columns});
      ASSERT_TRUE(found.ok() && wanted.ok()) << found.status() << wanted.status();
      for (int64_t i = 0; i < x.num_elements(); ++i) {
        ASSERT_EQ(found->data<float>()[i], wanted->data<float>()[i % length * rows + i / length])
            << rows << " rows of " << length << ", " << i;
      }
    }
  }
}

// What a mask hides has no weight at all; a column of which all is hidden has no sum.
TEST(Kernel, HiddenElementsBecomeZero) {
  Tensor x(kernels::Floats({2, 2}));
  const float values[] = {-INFINITY, -INFINITY, 3, -INFINITY};
  std::memcpy(x.raw_data(), values, sizeof(values));
  const auto kernel = Create(Desc({2, 2}, 0));
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const absl::StatusOr<Tensor> y = kernels::RunKernel(**kernel, {&x});
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ(y->data<float>()[0], 0);
  EXPECT_EQ(y->data<float>()[2], 1);
  EXPECT_TRUE(std::isnan(y->data<float>()[1]) && std::isnan(y->data<float>()[3]));
}

TEST(Kernel, IsTheSameOnAnyNumberOfThreads) {
  kernels::ExpectSameOnAnyThreads(Create, Desc({3, 16, 1111}, 1));
  kernels::ExpectSameOnAnyThreads(Create, Desc({5, 1111, 7}, 2));
}

TEST(Create, Declines) {
  KernelDesc codes = Desc({2, 3}, 0);
  codes.inputs = {kernels::Codes(DType::kU8, {2, 3}, 0.5f, 1)};
  EXPECT_EQ(Create(codes).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Create(Desc({2, 3}, 2)).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace fuselage::softmax
