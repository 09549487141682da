#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <new>

#include "ir/base/attribute.h"
#include "ir/base/status.h"
#include "ir/base/tensor.h"

namespace fuselage {
namespace {

TEST(StatusTest, AnnotateKeepsCodeAndPayload) {
  absl::Status status = absl::UnimplementedError("what");
  status.SetPayload("a.type", absl::Cord("x"));
  const absl::Status annotated = Annotate(status, "where");
  EXPECT_EQ(annotated.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(annotated.message(), "where: what");
  EXPECT_TRUE(annotated.GetPayload("a.type").has_value());
  EXPECT_FALSE(IsUsageError(annotated));
  EXPECT_TRUE(IsUsageError(Annotate(UsageError("what"), "where")));
  EXPECT_TRUE(Annotate(absl::OkStatus(), "where").ok());
}

TEST(DTypeTest, NamesRoundTrip) {
  for (DType dtype : {DType::kBool, DType::kU8, DType::kI8, DType::kI16, DType::kI32, DType::kI64, DType::kF16,
                      DType::kF32, DType::kF64}) {
    ASSERT_TRUE(DTypeFromName(DTypeName(dtype)).ok());
    EXPECT_EQ(*DTypeFromName(DTypeName(dtype)), dtype);
  }
  EXPECT_FALSE(DTypeFromName("f8").ok());
}

// The value of binary16 bits by its definition (IEEE 754-2008, 3.6).
double HalfByDefinition(uint16_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  const double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

TEST(HalfTest, EveryFiniteValueIsExactAndRoundTrips) {
  for (int bits = 0; bits < 65536; ++bits) {
    if (((bits >> 10) & 31) == 31) continue;
    const Half half{static_cast<uint16_t>(bits)};
    EXPECT_EQ(ToFloat(half), HalfByDefinition(half.bits));
    EXPECT_EQ(ToHalf(ToFloat(half)).bits, half.bits);
  }
}

TEST(HalfTest, RoundsHalfToEven) {
  for (int bits = 0; bits < 0x7bff; ++bits) {
    const double low = HalfByDefinition(bits), high = HalfByDefinition(bits + 1), middle = (low + high) / 2;
    EXPECT_EQ(ToHalf(static_cast<float>(middle)).bits, bits % 2 == 0 ? bits : bits + 1);
    EXPECT_EQ(ToHalf(std::nextafter(static_cast<float>(middle), 1e9f)).bits, bits + 1);
    EXPECT_EQ(ToHalf(std::nextafter(static_cast<float>(middle), 0.0f)).bits, bits);
  }
  EXPECT_EQ(ToHalf(65520.0f).bits, 0x7c00);
  EXPECT_EQ(ToHalf(std::nextafter(65520.0f, 0.0f)).bits, 0x7bff);
  EXPECT_EQ(ToHalf(-std::numeric_limits<float>::infinity()).bits, 0xfc00);
  EXPECT_TRUE(std::isnan(ToFloat(ToHalf(std::nanf("")))));
}

TEST(ShapeTest, CountsAndRejects) {
  EXPECT_EQ(*CheckedNumElements({}), 1);
  EXPECT_EQ(*CheckedNumElements({2, 0, 3}), 0);
  EXPECT_EQ(*CheckedNumElements({2, 3}), 6);
  EXPECT_FALSE(CheckedNumElements({2, -1}).ok());
  EXPECT_FALSE(CheckedNumElements({int64_t{1} << 40, int64_t{1} << 40}).ok());
  EXPECT_FALSE(CheckedNumElements({0, int64_t{1} << 40, int64_t{1} << 40}).ok());
  EXPECT_EQ(*NormalizeAxis(-1, 4), 3);
  EXPECT_EQ(*NormalizeAxis(0, 4), 0);
  EXPECT_FALSE(NormalizeAxis(4, 4).ok());
  EXPECT_FALSE(NormalizeAxis(0, 0).ok());
}

TEST(QuantParamsTest, Checks) {
  EXPECT_TRUE(CheckQuantParams(PerTensor(0.5f, 255), DType::kU8, {2}).ok());
  EXPECT_FALSE(CheckQuantParams(PerTensor(0.5f, 256), DType::kU8, {2}).ok());
  EXPECT_FALSE(CheckQuantParams(PerTensor(0.5f, -129), DType::kI8, {2}).ok());
  EXPECT_FALSE(CheckQuantParams(PerTensor(0.5f), DType::kF32, {2}).ok());
  for (float scale : {0.0f, -1.0f, 1e-40f, std::numeric_limits<float>::infinity(), std::nanf("")}) {
    EXPECT_FALSE(CheckQuantParams(PerTensor(scale), DType::kU8, {2}).ok()) << scale;
  }
  EXPECT_TRUE(CheckQuantParams(PerAxis(1, {1, 2}), DType::kI8, {3, 2}).ok());
  EXPECT_FALSE(CheckQuantParams(PerAxis(0, {1, 2}), DType::kI8, {3, 2}).ok());
  EXPECT_FALSE(CheckQuantParams(PerAxis(2, {1, 2}), DType::kI8, {3, 2}).ok());
}

TEST(QuantParamsTest, Text) {
  EXPECT_EQ(ToString(PerTensor(0.05f, -3)), "<scale=0.05, zp=-3>");
  EXPECT_EQ(ToString(PerTensor(0.1f)), "<scale=0.1>");
  EXPECT_EQ(ToString(PerAxis(0, {0.1f, 0.2f})), "<axis=0, scale=[0.1, 0.2]>");
}

// By its definition: the first number of digits that reads back.
std::string ShortestByTrial(double value) {
  char text[40];
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(text, sizeof(text), "%.*g", digits, value);
    if (std::strtod(text, nullptr) == value) break;
  }
  return text;
}

TEST(ShortestTextTest, IsTheShortestThatReadsBack) {
  for (int exponent = -1074; exponent <= 1023; ++exponent) {
    for (const double factor : {1.0, 1 - 0x1p-53, 1 + 0x1p-52, 1.1, -1.7}) {
      const double value = std::ldexp(factor, exponent);
      if (std::fabs(value) < 1e6 && value == std::floor(value)) continue;  // Plain integers.
      EXPECT_EQ(ShortestText(value), ShortestByTrial(value));
    }
  }
  EXPECT_EQ(ShortestText(0x1p-44), ShortestByTrial(0x1p-44));
  EXPECT_EQ(ShortestText(-0.0), "-0");
  EXPECT_EQ(ShortestText(-std::numeric_limits<float>::infinity()), "-inf");
  EXPECT_EQ(ShortestText(std::numeric_limits<double>::quiet_NaN()), "nan");
}

TEST(ShortestTextTest, ReadsBack) {
  uint32_t bits = 1;
  for (int i = 0; i < 20000; ++i) {
    bits = bits * 1664525u + 1013904223u;
    float value;
    std::memcpy(&value, &bits, 4);
    if (!std::isfinite(value)) continue;
    EXPECT_EQ(std::strtof(ShortestText(value).c_str(), nullptr), value);
  }
}

TEST(AttributeTest, KindsDiffer) {
  EXPECT_NE(Attribute(1), Attribute(1.0));
  EXPECT_NE(Attribute(1), Attribute(true));
  EXPECT_EQ(Attribute(1), Attribute(int64_t{1}));
  EXPECT_EQ(Attribute(1.0).ToString(), "1.0");
  EXPECT_EQ(Attribute(1e30).ToString(), "1e+30");
  EXPECT_EQ(Attribute(-std::numeric_limits<double>::infinity()).ToString(), "-inf");
  EXPECT_EQ(Attribute("a\"\\\n\x01").ToString(), "\"a\\\"\\\\\\n\\x01\"");
  EXPECT_EQ(Attribute(std::vector<double>{1, 0.5}).ToString(), "[1.0, 0.5]");
  EXPECT_EQ(Attribute(DType::kU8).ToString(), "u8");
}

TEST(TensorTest, SetRoundsAndSaturates) {
  Tensor t(DType::kI8, {5});
  const double values[] = {0.5, 1.5, 1000, -1000, std::nan("")};
  for (int i = 0; i < 5; ++i) t.Set(i, values[i]);
  EXPECT_EQ(t.values<int8_t>(), absl::MakeConstSpan(std::vector<int8_t>{0, 2, 127, -128, 0}));
}

TEST(TensorTest, IsAlignedZeroedAndCopied) {
  Tensor t(DType::kF32, {3});
  EXPECT_EQ(reinterpret_cast<uintptr_t>(t.raw_data()) % 64, 0);
  EXPECT_EQ(t.At(2), 0);
  Tensor copy = t;
  copy.Set(0, 7);
  EXPECT_EQ(t.At(0), 0);
  EXPECT_FALSE(copy.SameBytes(t));
  EXPECT_NE(Fingerprint(copy), Fingerprint(t));
}

TEST(TensorTest, BorrowsWithItsOwner) {
  const auto owner = std::make_shared<std::vector<float>>(std::vector<float>{1, 2, 3});
  Tensor copy;
  {
    Tensor borrowed =
        Tensor::Borrow(TensorType{DType::kF32, {3}, std::nullopt, Layout::kRowMajor}, owner->data(), owner);
    EXPECT_EQ(borrowed.data<float>(), owner->data());
    EXPECT_EQ(owner.use_count(), 2);
    const Tensor moved = std::move(borrowed);
    copy = moved;
    EXPECT_NE(copy.data<float>(), owner->data());
    EXPECT_TRUE(copy.SameBytes(moved));
  }
  EXPECT_EQ(owner.use_count(), 1);
  EXPECT_EQ(copy.data<float>()[2], 3);
}

TEST(TensorTest, CastOfI64IsExact) {
  const int64_t big = (int64_t{1} << 53) + 1;
  EXPECT_EQ(Cast(Tensor::Scalar<int64_t>(big), DType::kI64).data<int64_t>()[0], big);
}

TEST(TensorTest, DequantizedPerAxis) {
  Tensor t = Tensor::Of<int8_t>({2, 2}, {1, 2, 3, 4});
  TensorType type = t.type();
  type.quant = QuantParams{{0.5f, 2.0f}, {0, 1}, 0};
  t.set_type(type);
  EXPECT_EQ(ToDoubles(Dequantized(t)), (std::vector<double>{0.5, 1, 4, 6}));
}

TEST(TensorTest, SeededIsReproducible) {
  const Tensor a = SeededTensor({DType::kF32, {1000}, {}, Layout::kRowMajor}, 7);
  EXPECT_TRUE(a.SameBytes(SeededTensor(a.type(), 7)));
  EXPECT_FALSE(a.SameBytes(SeededTensor(a.type(), 8)));
  double low = 1, high = -1;
  for (double v : ToDoubles(a)) low = std::min(low, v), high = std::max(high, v);
  EXPECT_LT(low, -0.9);
  EXPECT_GT(high, 0.9);
  EXPECT_GE(low, -1);
  EXPECT_LT(high, 1);
}

TEST(TensorTest, WithoutMemoryIsBadAlloc) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer ends the process";
#endif
  for (DType dtype : {DType::kU8, DType::kF64}) {
    // The largest shapes that pass: rounded up, their bytes must not overflow either.
    const Shape shape = {std::numeric_limits<int64_t>::max() / 8};
    ASSERT_TRUE(CheckedNumElements(shape).ok());
    EXPECT_THROW(Tensor(dtype, shape), std::bad_alloc);
  }
}

}  // namespace
}  // namespace fuselage
