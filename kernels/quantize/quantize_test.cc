#include "kernels/quantize/quantize.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"
#include "kernels/core/testing/variant_test.h"
#include "kernels/testing/reference.h"

namespace fuselage::quantize {
namespace {

using kernels::GuardedMemory;
using kernels::OpCall;
using ::testing::HasSubstr;

constexpr DType kCodes[] = {DType::kU8, DType::kI8, DType::kI16, DType::kI32};

const kernels::KernelRegistry& Kernels() {
  static const auto* registry = [] {
    auto* created = new kernels::KernelRegistry;
    Register(*created);
    return created;
  }();
  return *registry;
}

// Ties, their neighbours, both ends of every range, infinities, NaNs, subnormals.
Tensor Reals(Shape shape, float scale) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Tensor x(DType::kF32, std::move(shape));
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    const float tie = 0.5f * static_cast<float>(i % 1201 - 600) * scale;
    const float special[] = {tie,
                             std::nextafter(tie, kInfinity),
                             std::nextafter(tie, -kInfinity),
                             137 * tie,
                             70000 * tie,
                             1e10f * tie,
                             1e-45f,
                             -0.0f,
                             kInfinity,
                             -kInfinity,
                             NAN,
                             -NAN};
    x.data<float>()[i] = special[i % 12];
  }
  return x;
}

// Zero points at both ends and between.
std::vector<int64_t> ZeroPoints(DType dtype, int64_t count) {
  const IntegerRange range = RangeOf(dtype);
  std::vector<int64_t> zero_points;
  for (int64_t i = 0; i < count; ++i) {
    zero_points.push_back(i % 4 == 0 ? range.min : i % 4 == 1 ? range.max : range.min + 17 * i % 256);
  }
  return zero_points;
}

std::vector<double> Scales(int64_t count) {
  std::vector<double> scales;
  for (int64_t i = 0; i < count; ++i) scales.push_back(0.013f * static_cast<float>(i % 7 + 1));
  return scales;
}

// The parameters as attributes, or as operands that are computed.
OpCall Call(const char* op, Tensor x, DType codes, int64_t axis, bool computed) {
  const int64_t count = axis < 0 ? 1 : x.dim(static_cast<int>(axis));
  OpCall call{op, {}, {{"axis", axis}}};
  if (call.op == "quantize") call.attributes.emplace("dtype", codes);
  if (computed) {
    const Shape shape = axis < 0 ? Shape{} : Shape{count};
    Tensor scales(DType::kF32, shape), zero_points(codes, shape);
    for (int64_t i = 0; i < count; ++i) {
      scales.Set(i, Scales(count)[i]);
      zero_points.Set(i, static_cast<double>(ZeroPoints(codes, count)[i]));
    }
    call.operands = {std::move(x), std::move(scales), std::move(zero_points)};
  } else {
    call.operands = {std::move(x)};
    call.attributes.emplace("scales", Scales(count));
    call.attributes.emplace("zero_points", ZeroPoints(codes, count));
  }
  return call;
}

const std::vector<Shape>& Shapes() {
  static const auto& shapes = *new std::vector<Shape>{
      {}, {0}, {1}, {7}, {8}, {9}, {31, 3}, {2, 33, 5, 3}, {3, 1, 4, 9}, {1, 2, 0, 3}, {2, 65, 4}};
  return shapes;
}

TEST(Quantize, HasTheReferencesBits) {
  for (const DType codes : kCodes) {
    for (const Shape& shape : Shapes()) {
      for (int axis = -1; axis < static_cast<int>(shape.size()); ++axis) {
        if (axis >= 0 && shape[axis] == 0) continue;  // No scales at all are none.
        for (const bool computed : {false, true}) {
          EXPECT_EQ(DifferenceFromReference(Kernels(), Call("quantize", Reals(shape, 0.013f), codes, axis, computed)),
                    "")
              << DTypeName(codes) << ToString(shape) << " axis " << axis;
        }
      }
    }
  }
}

TEST(Quantize, TakesIntegersAndManyElements) {
  for (const DType codes : kCodes) {
    const Tensor x = SeededTensor({DType::kI32, {3, 5, 67}, std::nullopt, Layout::kRowMajor}, 1);
    EXPECT_EQ(DifferenceFromReference(Kernels(), Call("quantize", x, codes, 1, false)), "") << DTypeName(codes);
    EXPECT_EQ(DifferenceFromReference(Kernels(), Call("quantize", Reals({20011}, 0.013f), codes, -1, true)), "");
  }
}

TEST(Dequantize, HasTheReferencesBits) {
  for (const DType codes : kCodes) {
    for (const Shape& shape : Shapes()) {
      Tensor x = SeededTensor({codes, shape, std::nullopt, Layout::kRowMajor}, 3);
      if (x.num_elements() > 1) {  // Both ends: differences that need 33 bits.
        x.Set(0, static_cast<double>(RangeOf(codes).min));
        x.Set(x.num_elements() - 1, static_cast<double>(RangeOf(codes).max));
      }
      for (int axis = -1; axis < static_cast<int>(shape.size()); ++axis) {
        if (axis >= 0 && shape[axis] == 0) continue;  // No scales at all are none.
        for (const bool computed : {false, true}) {
          EXPECT_EQ(DifferenceFromReference(Kernels(), Call("dequantize", x, codes, axis, computed)), "")
              << DTypeName(codes) << ToString(shape) << " axis " << axis;
        }
      }
    }
  }
}

TEST(Dequantize, TakesTheParametersOfTheCodesType) {
  TensorType type{DType::kI8, {2, 3, 5, 7}, PerAxis(1, {0.1f, 0.2f, 0.3f}), Layout::kRowMajor};
  EXPECT_EQ(DifferenceFromReference(Kernels(), {"dequantize", {SeededTensor(type, 1)}, {}}), "");
  type.quant = PerTensor(0.1f, -7);
  EXPECT_EQ(DifferenceFromReference(Kernels(), {"dequantize", {SeededTensor(type, 1)}, {}}), "");
}

// A scale that is not normal and > 0 is an error when it is there, the reference's.
TEST(Kernel, ChecksComputedScales) {
  for (const float scale : {0.0f, -1.0f, 1e-40f, NAN, INFINITY}) {
    OpCall call = Call("quantize", Reals({3, 4}, 1), DType::kU8, 1, true);
    call.operands[1]->data<float>()[2] = scale;
    const auto found =
        RunCall(*Kernels().FindOrNull("quantize"), call, DescOf(call, Layout::kRowMajor, Layout::kRowMajor));
    EXPECT_EQ(found.status().code(), absl::StatusCode::kInvalidArgument) << scale;
    EXPECT_THAT(DifferenceFromReference(Kernels(), call), HasSubstr(std::string(found.status().message())));
  }
}

// 8-bit codes of one scale have the kernels of lowered graphs.
TEST(Kernel, KnowsWhereOthersAreFaster) {
  const auto is_rows = [](DType codes, int64_t axis, bool computed) {
    const OpCall call = Call("quantize", Reals({4, 4}, 1), codes, axis, computed);
    const auto kernel = Create(DescOf(call, Layout::kRowMajor, Layout::kRowMajor));
    EXPECT_TRUE(kernel.ok()) << kernel.status();
    return dynamic_cast<const kernels::UnaryKernel*>(kernel->get()) == nullptr;
  };
  EXPECT_FALSE(is_rows(DType::kU8, -1, false));
  EXPECT_TRUE(is_rows(DType::kU8, 1, false));
  EXPECT_TRUE(is_rows(DType::kU8, -1, true));
  EXPECT_TRUE(is_rows(DType::kI16, -1, false));
}

using VariantTest = kernels::VariantTest<Variant>;

TEST_P(VariantTest, HasTheBitsOfScalar) {
  constexpr int64_t kMost = 70;
  std::vector<float> scales;
  for (const double scale : Scales(kMost)) scales.push_back(static_cast<float>(scale));
  for (const DType codes : kCodes) {
    std::vector<int32_t> zero_points;
    for (const int64_t zero_point : ZeroPoints(codes, kMost)) zero_points.push_back(static_cast<int32_t>(zero_point));
    for (const Form form : {Form{DType::kF32, codes}, Form{DType::kI32, codes}, Form{codes, DType::kF32}}) {
      for (const int64_t n : {0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 70}) {
        for (const int64_t param_stride : {0, 1}) {
          for (const int64_t stride : {1, 3}) {
            const int64_t x_bytes = ByteSize(form.from), y_bytes = ByteSize(form.to);
            GuardedMemory x(n * stride * x_bytes, static_cast<int>(x_bytes)), wanted(n * y_bytes),
                found(n * y_bytes, static_cast<int>(y_bytes));
            const Tensor values = form.from == DType::kF32
                                      ? Reals({n * stride}, 0.013f)
                                      : SeededTensor({form.from, {n * stride}, std::nullopt, Layout::kRowMajor}, 9);
            if (n > 0) std::memcpy(x.data(), values.raw_data(), x.size());
            Row row{x.data(), wanted.data(), scales.data(), zero_points.data(), n, stride, 1, param_stride};
            scalar::Run(form, row);
            row.y = found.data();
            GetParam().run(form, row);
            ASSERT_TRUE(n == 0 || std::memcmp(wanted.data(), found.data(), wanted.size()) == 0)
                << DTypeName(form.from) << " to " << DTypeName(form.to) << ", n " << n;
            ASSERT_TRUE(found.guards_intact());
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, VariantTest,
                         ::testing::ValuesIn(kernels::WithEmulated(Variants(), avx512_vnni_emulated::Run)),
                         kernels::VariantName());

}  // namespace
}  // namespace fuselage::quantize
