#include "kernels/cast/cast.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"
#include "kernels/core/testing/variant_test.h"
#include "kernels/testing/reference.h"

namespace fuselage::cast {
namespace {

using kernels::GuardedMemory;

constexpr DType kTypes[] = {DType::kBool, DType::kU8, DType::kI8, DType::kI32, DType::kI64, DType::kF32, DType::kF16};

bool IsDeclined(DType from, DType to) {
  const bool of_halves = from == DType::kF16 || to == DType::kF16;
  return of_halves && (from == to || (from != DType::kF32 && to != DType::kF32));
}

// The ends of all types and their neighbours, halves, NaN and infinities where there are any, and random values.
Tensor Values(DType dtype, Shape shape) {
  Tensor x = SeededTensor({dtype, std::move(shape), std::nullopt, Layout::kRowMajor}, 3);
  std::vector<double> values = {-0.5, 1.5, -1.5, 127.9, -128.9, 255.5, 256, -1, NAN, INFINITY, -INFINITY, 1e-45, -0.0};
  for (const int bits : {7, 8, 31, 32, 63}) {
    for (const double sign : {1.0, -1.0}) {
      const float end = static_cast<float>(sign * std::ldexp(1.0, bits));
      for (const float v : {end, std::nextafter(end, 0.0f), end * 2}) values.push_back(v);
    }
  }
  for (int64_t i = 0; i < x.num_elements(); i += 2) x.Set(i, values[i / 2 % values.size()]);
  return x;
}

TEST(Cast, HasTheReferencesBits) {
  kernels::KernelRegistry kernels;
  Register(kernels);
  for (const DType from : kTypes) {
    for (const DType to : kTypes) {
      if (IsDeclined(from, to)) continue;
      for (const Shape& shape : {Shape{}, Shape{0}, Shape{7}, Shape{2, 3, 5, 7}, Shape{40001}}) {
        EXPECT_EQ(DifferenceFromReference(kernels, {"to", {Values(from, shape)}, {{"dtype", to}}}), "")
            << DTypeName(from) << " to " << DTypeName(to) << ToString(shape);
      }
    }
  }
}

TEST(Cast, HasAllHalves) {
  kernels::KernelRegistry kernels;
  Register(kernels);
  Tensor halves(DType::kF16, {1 << 16});
  for (int i = 0; i < 1 << 16; ++i) halves.data<Half>()[i].bits = static_cast<uint16_t>(i);
  EXPECT_EQ(DifferenceFromReference(kernels, {"to", {halves}, {{"dtype", DType::kF32}}}), "");
  // Each, what is in the middle between it and the next, and the neighbours of that.
  Tensor floats(DType::kF32, {5 << 15});
  for (int i = 0; i < 1 << 15; ++i) {
    const float half = ToFloat(Half{static_cast<uint16_t>(i)}), next = ToFloat(Half{static_cast<uint16_t>(i + 1)});
    const float middle = half + (next - half) / 2;
    const float around[] = {half, middle, std::nextafter(middle, 0.0f), std::nextafter(middle, INFINITY), -middle};
    for (int k = 0; k < 5; ++k) floats.data<float>()[5 * i + k] = around[k];
  }
  EXPECT_EQ(DifferenceFromReference(kernels, {"to", {floats}, {{"dtype", DType::kF16}}}), "");
}

TEST(Cast, Declines) {
  for (const auto& [from, to] : {std::pair{DType::kI64, DType::kF16}, {DType::kF32, DType::kF64}}) {
    const kernels::OpCall call{"to", {Tensor(from, {3})}, {{"dtype", to}}};
    EXPECT_EQ(Create(DescOf(call, Layout::kRowMajor, Layout::kRowMajor)).status().code(),
              absl::StatusCode::kUnimplemented);
  }
}

using VariantTest = kernels::VariantTest<Variant>;

TEST_P(VariantTest, HasTheBitsOfScalar) {
  for (const DType from : kTypes) {
    for (const DType to : kTypes) {
      if (IsDeclined(from, to)) continue;
      for (const int64_t n : {0, 1, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 131}) {
        const Tensor x = Values(from, {n + 1});  // One is left out: misaligned.
        const void* values = static_cast<const char*>(x.raw_data()) + ByteSize(from);
        GuardedMemory wanted(n * ByteSize(to)), found(n * ByteSize(to), static_cast<int>(ByteSize(to)));
        scalar::Run({from, to}, values, wanted.data(), n);
        GetParam().run({from, to}, values, found.data(), n);
        ASSERT_TRUE(n == 0 || std::memcmp(wanted.data(), found.data(), wanted.size()) == 0)
            << DTypeName(from) << " to " << DTypeName(to) << ", n " << n;
        ASSERT_TRUE(found.guards_intact());
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, VariantTest,
                         ::testing::ValuesIn(kernels::WithEmulated(Variants(), avx512_vnni_emulated::Run)),
                         kernels::VariantName());

}  // namespace
}  // namespace fuselage::cast
