#include "kernels/integer/integer.h"

#include <cstring>
#include <optional>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"
#include "kernels/core/testing/variant_test.h"
#include "kernels/integer/pixel.h"
#include "kernels/integer/tile.h"
#include "kernels/testing/reference.h"

namespace fuselage::integer {
namespace {

using kernels::GuardedMemory;
using kernels::OpCall;
using Ints = std::vector<int64_t>;

const kernels::KernelRegistry& Kernels() {
  static const auto* registry = [] {
    auto* created = new kernels::KernelRegistry;
    Register(*created);
    return created;
  }();
  return *registry;
}

Tensor Codes(DType dtype, Shape shape, uint64_t seed) {
  return SeededTensor({dtype, std::move(shape), std::nullopt, Layout::kRowMajor}, seed);
}

// All codes at one end and all zero points at the other: the widest sums.
Tensor AllOf(DType dtype, Shape shape, bool greatest) {
  Tensor x = Codes(dtype, std::move(shape), 1);
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    x.Set(i, static_cast<double>(greatest ? RangeOf(dtype).max : RangeOf(dtype).min));
  }
  return x;
}

TEST(MatmulInteger, HasTheReferencesBits) {
  for (const auto& [a, b] : std::vector<std::pair<Shape, Shape>>{{{1, 1}, {1, 1}},
                                                                 {{2, 3}, {3, 33}},
                                                                 {{1, 64}, {64, 100}},
                                                                 {{9, 31}, {31, 32}},
                                                                 {{70, 50}, {50, 65}},
                                                                 {{2, 3, 17, 20}, {20, 31}},
                                                                 {{0, 4}, {4, 5}},
                                                                 {{3, 0}, {0, 5}},
                                                                 {{3, 4}, {4, 0}}}) {
    for (const DType a_type : {DType::kU8, DType::kI8}) {
      for (const DType b_type : {DType::kU8, DType::kI8}) {
        for (const std::optional<Shape>& zeros : {std::optional<Shape>(), {Shape{}}, {Shape{1}}, {Shape{b[1]}}}) {
          OpCall call{"matmul_integer", {Codes(a_type, a, 1), Codes(b_type, b, 2), std::nullopt, std::nullopt}, {}};
          if (zeros) {
            call.operands[2] = Codes(a_type, {}, 3);
            call.operands[3] = Codes(b_type, *zeros, 4);
          }
          EXPECT_EQ(DifferenceFromReference(Kernels(), call), "") << ToString(a) << ToString(b);
        }
      }
    }
  }
}

TEST(MatmulInteger, SumsOfTheWidestProductsAreExact) {
  for (const bool greatest : {false, true}) {
    const OpCall call{"matmul_integer",
                      {AllOf(DType::kU8, {3, 1001}, greatest), AllOf(DType::kI8, {1001, 35}, !greatest),
                       AllOf(DType::kU8, {}, !greatest), AllOf(DType::kI8, {35}, greatest)},
                      {}};
    EXPECT_EQ(DifferenceFromReference(Kernels(), call), "");
  }
}

// Codes less their zero points that are bytes, and such that are not, on either side, in one column or all.
TEST(MatmulInteger, TakesAnyZeroPoint) {
  for (const DType dtype : {DType::kI8, DType::kU8}) {
    for (const double zero : {-128, -1, 0, 1, 127, 128, 129, 255}) {
      if (zero < RangeOf(dtype).min || zero > RangeOf(dtype).max) continue;
      for (const int64_t columns : {1, 40}) {
        OpCall call{"matmul_integer",
                    {Codes(DType::kU8, {5, 70}, 1), Codes(dtype, {70, 40}, 2), Codes(DType::kU8, {}, 3),
                     AllOf(dtype, {columns}, false)},
                    {}};
        for (int64_t i = 0; i < 80; ++i) {  // Rows of both ends.
          call.operands[1]->Set(i, static_cast<double>(i < 40 ? RangeOf(dtype).min : RangeOf(dtype).max));
        }
        call.operands[3]->Set(columns - 1, zero);
        EXPECT_EQ(DifferenceFromReference(Kernels(), call), "") << zero;
      }
    }
  }
}

// A matrix that no run changes is packed once, and gives the same.
TEST(MatmulInteger, PacksAKnownMatrixOnce) {
  const OpCall call{"matmul_integer",
                    {Codes(DType::kU8, {5, 70}, 1), Codes(DType::kI8, {70, 40}, 2), Codes(DType::kU8, {}, 3),
                     Codes(DType::kI8, {40}, 4)},
                    {}};
  const kernels::KernelEntry& entry = *Kernels().FindOrNull("matmul_integer");
  kernels::KernelDesc desc = DescOf(call, Layout::kRowMajor, Layout::kRowMajor);
  desc.parameters.clear();
  const auto wanted = RunCall(entry, call, desc);
  EXPECT_EQ((*entry.create(desc))->weight_bytes(), 0);
  desc.parameters = {{"b", &*call.operands[1]}, {"b_zero_point", &*call.operands[3]}};
  const auto found = RunCall(entry, call, desc);
  EXPECT_GT((*entry.create(desc))->weight_bytes(), 0);
  ASSERT_TRUE(wanted.ok() && found.ok()) << wanted.status() << found.status();
  EXPECT_TRUE((*found)[0].SameBytes((*wanted)[0]));
}

TEST(ConvInteger, HasTheReferencesBits) {
  struct Case {
    Shape input, weight;
    Ints stride = {1, 1}, padding = {0, 0, 0, 0}, dilation = {1, 1};
    int64_t groups = 1;
  };
  const Case cases[] = {{{1, 1, 1, 1}, {1, 1, 1, 1}},
                        {{2, 5, 9, 7}, {6, 5, 3, 3}},
                        {{1, 3, 17, 13}, {40, 3, 7, 5}, {2, 3}, {3, 2, 1, 4}},
                        {{1, 8, 12, 12}, {12, 2, 3, 2}, {1, 2}, {2, 1, 2, 1}, {2, 1}, 4},
                        {{2, 24, 10, 10}, {24, 1, 3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, 24},
                        {{1, 40, 7, 9}, {40, 1, 4, 5}, {1, 2}, {3, 2, 1, 4}, {2, 1}, 40},
                        {{2, 16, 5, 6}, {16, 1, 1, 2}, {1, 1}, {0, 1, 0, 0}, {1, 1}, 16},
                        {{1, 3, 6, 6}, {3, 1, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 3},
                        {{1, 18, 5, 5}, {36, 1, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 18},
                        {{0, 3, 4, 4}, {2, 3, 3, 3}},
                        {{0, 17, 4, 4}, {17, 1, 3, 3}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 17}};
  for (const Case& c : cases) {
    const AttributeMap attributes = {
        {"stride", c.stride}, {"padding", c.padding}, {"dilation", c.dilation}, {"groups", c.groups}};
    for (const DType x : {DType::kU8, DType::kI8}) {
      for (const DType w : {DType::kU8, DType::kI8}) {
        for (const std::optional<Shape>& zeros : {std::optional<Shape>(), {Shape{}}, {Shape{c.weight[0], 1, 1, 1}}}) {
          OpCall call{
              "conv_integer2d", {Codes(x, c.input, 1), Codes(w, c.weight, 2), std::nullopt, std::nullopt}, attributes};
          if (zeros) {
            call.operands[2] = Codes(x, {}, 3);
            call.operands[3] = Codes(w, *zeros, 4);
          }
          EXPECT_EQ(DifferenceFromReference(Kernels(), call), "") << ToString(c.input) << ToString(c.weight);
        }
      }
    }
  }
}

TEST(ConvInteger, SumsOfTheWidestProductsAreExact) {
  for (const bool greatest : {false, true}) {
    for (const int64_t groups : {1, 20}) {
      const OpCall call{
          "conv_integer2d",
          {AllOf(DType::kU8, {1, 20, 5, 5}, greatest), AllOf(DType::kI8, {20, 20 / groups, 3, 3}, !greatest),
           AllOf(DType::kU8, {}, !greatest), AllOf(DType::kI8, {20, 1, 1, 1}, greatest)},
          {{"padding", Ints{1, 1, 1, 1}}, {"groups", groups}}};
      EXPECT_EQ(DifferenceFromReference(Kernels(), call), "");
    }
  }
}

TEST(Create, Declines) {
  const auto status = [](const OpCall& call) {
    const kernels::KernelDesc desc = DescOf(call, Layout::kNhwc, Layout::kNhwc);
    return Kernels().FindOrNull(call.op)->create(desc).status().code();
  };
  constexpr DType kU8 = DType::kU8;
  const Tensor matrix = Codes(kU8, {3, 3}, 1);
  EXPECT_EQ(status({"matmul_integer", {matrix, matrix, Codes(kU8, {3, 1}, 1), std::nullopt}, {}}),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(status({"matmul_integer", {matrix, matrix, std::nullopt, Codes(kU8, {3, 1}, 1)}, {}}),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(status({"matmul_integer", {matrix, Codes(kU8, {2, 3, 3}, 1), std::nullopt, std::nullopt}, {}}),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(
      status({"conv_integer2d",
              {Codes(kU8, {1, 2, 3, 3}, 1), Codes(kU8, {2, 2, 1, 1}, 1), Codes(kU8, {1, 2, 1, 1}, 1), std::nullopt},
              {}}),
      absl::StatusCode::kUnimplemented);
}

using VariantTest = kernels::VariantTest<Variant>;

template <typename A, typename B>
int32_t Sum(const Tile& t, int64_t row, int64_t column) {
  constexpr int64_t kPerStep = kStepBytes / sizeof(A);
  const A* a = static_cast<const A*>(t.a) + row * t.steps * kPerStep;
  const B* b = static_cast<const B*>(t.b);
  uint32_t sum = static_cast<uint32_t>(t.addend[column]);
  if (t.row_factors != nullptr) {
    sum += static_cast<uint32_t>(t.row_factors[row]) * static_cast<uint32_t>(t.column_factors[column]);
  }
  for (int64_t k = 0; k < t.steps * kPerStep; ++k) {
    sum += static_cast<uint32_t>(a[k] * b[(k / kPerStep * kPanel + column) * kPerStep + k % kPerStep]);
  }
  return static_cast<int32_t>(sum);
}

TEST_P(VariantTest, AddsExactly) {
  for (const int64_t steps : {0, 1, 2, 9, 10}) {
    for (const int64_t rows : {0, 1, 2, 3, 7, 8, 9, 17}) {
      for (const int columns : {1, 7, 8, 15, 16, 17, 31, 32}) {
        GuardedMemory a(rows * steps * kStepBytes, 1), b(steps * kPanel * kStepBytes, 1), addend(kPanel * 4, 4);
        GuardedMemory row_factors(rows * 4, 4), column_factors(kPanel * 4, 4);
        a.FillRandom(static_cast<uint32_t>(rows));  // Any bits: sums wrap.
        b.FillRandom(static_cast<uint32_t>(columns));
        addend.FillRandom(7);
        row_factors.FillRandom(8);
        column_factors.FillRandom(9);
        const int64_t c_stride = columns + 3;
        GuardedMemory wanted(rows * c_stride * 4), found(rows * c_stride * 4, 4);
        wanted.FillRandom(5);
        found.FillRandom(5);
        Tile tile{a.data(), b.data(), addend.as<int32_t>()};
        if (GetParam().bytes && steps % 2 == 0) {
          tile.row_factors = row_factors.as<int32_t>();
          tile.column_factors = column_factors.as<int32_t>();
        }
        tile.c = found.as<int32_t>();
        tile.steps = steps;
        tile.c_stride = c_stride;
        tile.rows = rows;
        tile.columns = columns;
        for (int64_t row = 0; row < rows; ++row) {
          for (int64_t n = 0; n < columns; ++n) {
            wanted.as<int32_t>()[row * c_stride + n] =
                GetParam().bytes ? Sum<uint8_t, int8_t>(tile, row, n) : Sum<int16_t, int16_t>(tile, row, n);
          }
        }
        GetParam().run(tile);
        ASSERT_TRUE(rows == 0 || std::memcmp(wanted.data(), found.data(), wanted.size()) == 0)
            << rows << " rows, " << columns << " columns, " << steps << " steps";
        ASSERT_TRUE(found.guards_intact());
      }
    }
  }
}

std::vector<Variant> AllVariants() {
  std::vector<Variant> variants(Variants().begin(), Variants().end());
  variants.push_back({"avx512_vnni_emulated", kernels::Isa::kScalar, true, avx512_vnni_emulated::Run});
  return variants;
}

INSTANTIATE_TEST_SUITE_P(All, VariantTest, ::testing::ValuesIn(AllVariants()), kernels::VariantName());

using PixelTest = kernels::VariantTest<depthwise::Variant>;

TEST_P(PixelTest, HasTheBitsOfScalar) {
  for (const int64_t pairs : {1, 2, 5}) {
    for (const int64_t channels : {1, 15, 16, 17, 31, 32, 33, 100}) {
      for (const bool is_signed : {false, true}) {
        const int64_t blocks = (channels + depthwise::kLanes - 1) / depthwise::kLanes;
        GuardedMemory codes(2 * pairs * channels, 1), weight(blocks * pairs * depthwise::kLanes * 4, 2);
        GuardedMemory first(4 * channels, 4), wanted(4 * channels), found(4 * channels, 4);
        for (GuardedMemory* memory : {&codes, &weight, &first}) memory->FillRandom(static_cast<uint32_t>(channels));
        std::vector<const uint8_t*> taps;
        for (int64_t t = 0; t < 2 * pairs; ++t) taps.push_back(codes.data() + t * channels);
        depthwise::Pixel pixel{taps.data(), is_signed, weight.as<int16_t>(), first.as<int32_t>(), wanted.as<int32_t>(),
                               pairs,       channels};
        if (GetParam().accepts != nullptr && !GetParam().accepts(pixel)) continue;
        depthwise::scalar::Run(pixel);
        pixel.sums = found.as<int32_t>();
        GetParam().run(pixel);
        ASSERT_EQ(std::memcmp(wanted.data(), found.data(), wanted.size()), 0)
            << pairs << " pairs of taps, " << channels << " channels";
        ASSERT_TRUE(found.guards_intact());
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, PixelTest,
                         ::testing::ValuesIn(kernels::WithEmulated(depthwise::Variants(),
                                                                   depthwise::avx512_vnni_emulated::Run)),
                         kernels::VariantName());

}  // namespace
}  // namespace fuselage::integer
