#include "kernels/along_axis/along_axis.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"
#include "kernels/core/testing/variant_test.h"
#include "kernels/testing/reference.h"

namespace fuselage::along_axis {
namespace {

using kernels::OpCall;
using Ints = std::vector<int64_t>;

const kernels::KernelRegistry& Registry() {
  static const auto* registry = [] {
    auto* created = new kernels::KernelRegistry;
    Register(*created);
    return created;
  }();
  return *registry;
}

// Few values, so that there are equal ones; with NaN and infinities where the type has them.
Tensor Values(DType dtype, const Shape& shape, uint64_t seed) {
  Tensor x = SeededTensor({dtype, shape, std::nullopt, Layout::kRowMajor}, seed);
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    if (i % 3 == 0) x.Set(i, static_cast<double>(i % 5) - 2);
    if (IsFloat(dtype) && i % 43 == 40) x.Set(i, i % 2 == 0 ? NAN : INFINITY);
  }
  return x;
}

using VariantTest = kernels::VariantTest<Variant>;

// Each op of lines beside one another, up to all that one call takes, and of one line.
TEST_P(VariantTest, HasTheBitsOfScalar) {
  for (const char* op : {"argmax", "argmin", "cumsum", "hardmax", "log_softmax", "logsumexp"}) {
    const Row &wanted_row = *scalar::RowOrNull(op), &row = *GetParam().run(op);
    for (const int64_t count : std::vector<int64_t>{1, 3, 8, 17, kMostLines}) {
      for (const int64_t length : {1, 2, 15, 16, 50}) {
        const int64_t stride = count == 1 ? 1 : count + 3, size = (length - 1) * stride + count;
        for (const DType dtype : {DType::kF32, DType::kI32, DType::kI64}) {
          const auto function = [&](const Row& of) {
            return dtype == DType::kF32 ? of.f32 : dtype == DType::kI32 ? of.i32 : of.i64;
          };
          if (function(row) == nullptr) continue;
          const Tensor x = Values(dtype, {size}, length);
          for (const bool flag : {false, true}) {
            const Lines lines = {length, stride, count, flag, flag, flag};
            kernels::GuardedMemory wanted(8 * size), found(8 * size);
            std::memset(wanted.data(), 0x5a, 8 * size);
            std::memset(found.data(), 0x5a, 8 * size);
            function(wanted_row)(lines, x.raw_data(), wanted.data());
            function(row)(lines, x.raw_data(), found.data());
            ASSERT_TRUE(found.guards_intact());
            // NaNs may differ in sign.
            const bool is_float =
                dtype == DType::kF32 && row.op != absl::string_view("argmax") && row.op != absl::string_view("argmin");
            for (int64_t i = 0; i < 2 * size; ++i) {
              const float a = wanted.as<float>()[i], b = found.as<float>()[i];
              ASSERT_TRUE(std::memcmp(&a, &b, 4) == 0 || (is_float && std::isnan(a) && std::isnan(b)))
                  << op << " of " << count << " lines of " << length << ", " << DTypeName(dtype) << ", at " << i;
            }
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, VariantTest,
                         ::testing::ValuesIn(kernels::WithEmulated(Variants(), avx512_vnni_emulated::RowOrNull)),
                         kernels::VariantName());

const std::pair<Shape, int64_t> kCases[] = {{{1}, 0},        {{7}, 0},          {{5, 33}, 1},
                                            {{5, 33}, 0},    {{2, 3, 4, 5}, 1}, {{2, 3, 4, 5}, -1},
                                            {{3, 4001}, -1}, {{300, 40}, 0},    {{2, 20, 300}, 1}};

TEST(AlongAxis, IndicesAndSumsHaveTheReferencesBits) {
  for (const auto& [shape, dim] : kCases) {
    for (const DType dtype : {DType::kF32, DType::kI32, DType::kI64}) {
      const Tensor x = Values(dtype, shape, 3);
      for (const bool a : {false, true}) {
        for (const char* op : {"argmax", "argmin"}) {
          EXPECT_EQ(
              DifferenceFromReference(Registry(), {op, {x}, {{"dim", dim}, {"keepdim", a}, {"select_last_index", !a}}}),
              "")
              << op << ToString(x.type());
        }
        for (const bool b : {false, true}) {
          EXPECT_EQ(
              DifferenceFromReference(Registry(), {"cumsum", {x}, {{"dim", dim}, {"exclusive", a}, {"reverse", b}}}),
              "")
              << ToString(x.type());
        }
      }
    }
    EXPECT_EQ(
        DifferenceFromReference(Registry(), {"hardmax", {SeededTensor(kernels::Floats(shape), 4)}, {{"dim", dim}}}), "")
        << ToString(shape);
  }
}

void ExpectNear(const OpCall& call) {
  const kernels::KernelDesc desc = DescOf(call, Layout::kRowMajor, Layout::kRowMajor);
  const auto found = RunCall(*Registry().FindOrNull(call.op), call, desc);
  ASSERT_TRUE(found.ok()) << found.status();
  const std::vector<Tensor> x = {*call.operands[0]};
  const auto wanted = ir::Evaluate(*kernels::Ops().FindOrNull(call.op), desc.attributes, {&x}, ir::Type(desc.output()));
  ASSERT_TRUE(wanted.ok()) << wanted.status();
  for (int64_t i = 0; i < desc.output().num_elements(); ++i) {
    const double a = (*found)[0].At(i), b = (*wanted)[0].At(i);
    if (std::isnan(b) || std::isinf(b)) {
      ASSERT_TRUE(std::isnan(b) ? std::isnan(a) : a == b) << i << ": " << a << ", wanted " << b;
    } else {
      ASSERT_NEAR(a, b, 2e-7 * std::fabs(b) + 1e-12) << i;
    }
  }
}

TEST(AlongAxis, LogarithmsFollowTheReference) {
  for (const auto& [shape, dim] : kCases) {
    SCOPED_TRACE(ToString(shape));
    Tensor x = SeededTensor(kernels::Floats(shape), 5);
    for (int64_t i = 0; i < x.num_elements(); ++i) x.Set(i, x.At(i) * 100);
    ExpectNear({"log_softmax", {x}, {{"dim", dim}}});
    ExpectNear({"logsumexp", {x}, {{"dims", Ints{dim}}, {"keepdim", true}}});
  }
  const Tensor x = SeededTensor(kernels::Floats({2, 3, 4, 5}), 6);
  for (const Ints& dims : {Ints{}, Ints{1, 2}, Ints{3, 2}, Ints{0, 1, 2}})
    ExpectNear({"logsumexp", {x}, {{"dims", dims}}});
  Tensor special = Tensor::Of<float>({4, 2}, {-INFINITY, -INFINITY, INFINITY, 1, NAN, 1, -INFINITY, 2});
  ExpectNear({"logsumexp", {special}, {{"dims", Ints{1}}}});
}

TEST(AlongAxis, Declines) {
  const auto code = [](OpCall call) {
    return Create(DescOf(call, Layout::kRowMajor, Layout::kRowMajor)).status().code();
  };
  EXPECT_EQ(code({"logsumexp", {Tensor(DType::kF32, {2, 2, 2})}, {{"dims", Ints{0, 2}}}}),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(code({"cumsum", {Tensor(DType::kF16, {2})}, {{"dim", 0}}}), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(code({"cumsum", {Tensor(DType::kF32, {2, 0})}, {{"dim", 0}}}), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace fuselage::along_axis
