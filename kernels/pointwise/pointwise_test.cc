#include "kernels/pointwise/pointwise.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ir/base/elementwise.h"
#include "kernels/core/testing/testing.h"
#include "kernels/testing/reference.h"

namespace fuselage::pointwise {
namespace {

using kernels::OpCall;

const kernels::KernelRegistry& Registry() {
  static const auto* registry = [] {
    auto* created = new kernels::KernelRegistry;
    RegisterAll(*created);
    return created;
  }();
  return *registry;
}

// Random, with the ends of the type, NaN and infinities, zeros of both signs, and equal ones in between.
Tensor Values(DType dtype, Shape shape, uint64_t seed) {
  Tensor x = SeededTensor({dtype, std::move(shape), std::nullopt, Layout::kRowMajor}, seed);
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> special = {NAN, infinity, -infinity, 0.0, -0.0, 1, -1, 2, 63, 64, 9e18, -9e18};
  for (int64_t i = 0; i < x.num_elements(); i += 2) x.Set(i, special[(i / 2 * 7 + seed) % special.size()]);
  return x;
}

const std::vector<std::pair<Shape, Shape>>& Shapes() {
  static const auto& shapes = *new std::vector<std::pair<Shape, Shape>>{
      {{}, {}},         {{0}, {0}},          {{7}, {7}},   {{2, 3, 5, 7}, {2, 3, 5, 7}}, {{2, 3, 4, 5}, {3, 1, 1}},
      {{1, 5}, {4, 1}}, {{40001}, {1}},      {{}, {2, 3}}, {{3, 1, 7}, {2, 1, 5, 1}},    {{2, 3, 4, 5}, {1, 1, 4, 5}},
      {{5, 1}, {5, 3}}, {{33, 1000}, {1000}}};
  return shapes;
}

TEST(Pointwise, BinaryHasTheReferencesBits) {
  const std::vector<DType> integers = {DType::kU8, DType::kI8, DType::kI32, DType::kI64};
  std::vector<DType> all = integers;
  all.push_back(DType::kBool);
  all.push_back(DType::kF32);
  const struct {
    std::vector<const char*> ops;
    std::vector<DType> dtypes;
  } cases[] = {{{"add", "sub", "mul", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor",
                 "bitwise_left_shift", "bitwise_right_shift"},
                integers},
               {{"eq", "ne", "gt", "ge", "lt", "le"}, all},
               {{"logical_and", "logical_or", "logical_xor"}, {DType::kBool}},
               {{"maximum", "minimum", "prelu", "sub", "div"}, {DType::kF32}}};
  for (const auto& c : cases) {
    for (const char* op : c.ops) {
      for (const DType dtype : c.dtypes) {
        for (const auto& [a, b] : Shapes()) {
          EXPECT_EQ(DifferenceFromReference(Registry(), {op, {Values(dtype, a, 1), Values(dtype, b, 2)}, {}}), "")
              << op << " " << DTypeName(dtype) << " " << ToString(a) << " " << ToString(b);
        }
      }
    }
  }
}

// By constants; by what may be 0 the reference divides, and reports it.
TEST(Pointwise, DividesIntegersByConstants) {
  for (const char* op : {"div", "fmod", "remainder"}) {
    for (const DType dtype : {DType::kU8, DType::kI8, DType::kI32, DType::kI64}) {
      Tensor divisor({dtype, {6}, std::nullopt, Layout::kRowMajor});
      const double divisors[] = {1, -1, 3, -7, 100, -9e18};
      for (int64_t i = 0; i < 6; ++i) divisor.Set(i, dtype == DType::kU8 ? i + 1 : divisors[i]);
      const OpCall call{op, {Values(dtype, {40, 6}, 1), divisor}, {}};
      kernels::KernelDesc desc = DescOf(call, Layout::kRowMajor, Layout::kRowMajor);
      EXPECT_EQ(Create(desc).status().code(), absl::StatusCode::kUnimplemented);
      desc.parameters["other"] = &divisor;
      const auto found = RunCall(*Registry().FindOrNull(op), call, desc);
      const std::vector<Tensor> x = {*call.operands[0]}, by = {divisor};
      const auto wanted = ir::Evaluate(*kernels::Ops().FindOrNull(op), {}, {&x, &by}, ir::Type(desc.output()));
      ASSERT_TRUE(found.ok() && wanted.ok()) << op << found.status() << wanted.status();
      EXPECT_TRUE((*found)[0].SameBytes((*wanted)[0])) << op << " " << DTypeName(dtype);
      divisor.Set(3, 0);
      EXPECT_EQ(Create(desc).status().code(), absl::StatusCode::kUnimplemented);
    }
  }
}

TEST(Pointwise, UnaryHasTheReferencesBits) {
  const struct {
    std::vector<const char*> ops;
    std::vector<DType> dtypes;
  } cases[] = {{{"abs", "neg", "sign", "relu"}, {DType::kI8, DType::kI32, DType::kI64, DType::kF32}},
               {{"bitwise_not"}, {DType::kU8, DType::kI64}},
               {{"logical_not"}, {DType::kBool}},
               {{"isnan", "isinf", "floor", "ceil", "round", "sqrt", "reciprocal"}, {DType::kF32}}};
  for (const auto& c : cases) {
    for (const char* op : c.ops) {
      for (const DType dtype : c.dtypes) {
        for (const Shape& shape : {Shape{}, Shape{0}, Shape{2, 3, 5, 7}, Shape{40001}}) {
          EXPECT_EQ(DifferenceFromReference(Registry(), {op, {Values(dtype, shape, 3)}, {}}), "")
              << op << " " << DTypeName(dtype) << ToString(shape);
        }
      }
    }
  }
}

TEST(Pointwise, WhereMovesAnyElements) {
  for (const DType dtype : {DType::kBool, DType::kI8, DType::kF16, DType::kF32, DType::kI64}) {
    for (const auto& [a, b] : Shapes()) {
      const Tensor condition = SeededTensor({DType::kBool, a, std::nullopt, Layout::kRowMajor}, 4);
      EXPECT_EQ(
          DifferenceFromReference(Registry(), {"where", {condition, Values(dtype, b, 5), Values(dtype, a, 6)}, {}}), "")
          << DTypeName(dtype) << " " << ToString(a) << " " << ToString(b);
    }
  }
}

// Every step is an op with a kernel: its f32 results are the reference's to within two units in the last place, and the
// same on every number of threads.
TEST(Pointwise, EveryStepFollowsTheReference) {
  for (const absl::string_view step : ElementwiseSteps()) {
    const std::string op(step);
    const bool binary = kernels::Ops().FindOrNull(op)->operands.size() == 2;
    Tensor x(DType::kF32, {3, 1400});
    for (int64_t i = 0; i < x.num_elements(); ++i) {
      const double power = std::exp2(static_cast<double>(i % 320) / 8 - 20);
      x.Set(i, i / 320 % 2 == 0 ? power : -power);
    }
    OpCall call{op, {x}, {}};
    if (binary) call.operands.push_back(Tensor::Of<float>({3, 1}, {0.75f, -3, 2}));
    const kernels::KernelDesc desc = DescOf(call, Layout::kRowMajor, Layout::kRowMajor);
    const auto found = RunCall(*Registry().FindOrNull(op), call, desc);
    ASSERT_TRUE(found.ok()) << op << found.status();
    std::vector<std::vector<Tensor>> values;
    for (const auto& operand : call.operands) values.push_back({*operand});
    std::vector<const std::vector<Tensor>*> pointers;
    for (const auto& value : values) pointers.push_back(&value);
    const auto wanted =
        ir::Evaluate(*kernels::Ops().FindOrNull(op), call.attributes, pointers, ir::Type(desc.output()));
    ASSERT_TRUE(wanted.ok()) << op << wanted.status();
    for (int64_t i = 0; i < x.num_elements(); ++i) {
      const double a = (*found)[0].At(i), b = (*wanted)[0].At(i);
      if (std::isnan(b) || std::isinf(b)) {
        ASSERT_TRUE(std::isnan(b) ? std::isnan(a) : a == b) << op << " of " << x.At(i) << ": " << a << ", wanted " << b;
      } else {
        ASSERT_NEAR(a, b, 5e-7 * std::fabs(b) + 5e-7) << op << " of " << x.At(i);
      }
    }
  }
}

TEST(Pointwise, Declines) {
  const auto code = [](OpCall call) {
    return Create(DescOf(call, Layout::kRowMajor, Layout::kRowMajor)).status().code();
  };
  const Tensor whole(DType::kI32, {3}), half(DType::kF16, {3}), floats(DType::kF32, {3});
  EXPECT_EQ(code({"add", {whole, whole}, {{"alpha", 2.0}}}), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(code({"add", {half, half}, {}}), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(code({"isinf", {floats}, {{"detect_negative", false}}}), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(code({"div", {whole, whole}, {}}), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace fuselage::pointwise
