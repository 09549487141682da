#include "passes/quantize/weight_grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "ir/op.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "passes/quantize/scales.h"

namespace fuselage::quantize {
namespace {

Tensor Weight(int64_t rows, int64_t columns) {
  Tensor weight = SeededTensor(Tensor(DType::kF32, {rows, columns}).type(), 1);
  for (int64_t i = 0; i < columns; ++i) weight.data<float>()[i] = i % 2 == 0 ? 0 : 1e-30f;  // A row of next to nothing.
  return weight;
}

TEST(WeightGridTest, HasTheValuesOfQuantizedWeights) {
  for (const QuantizeOptions::Weights mode :
       {QuantizeOptions::PER_CHANNEL, QuantizeOptions::PER_TENSOR, QuantizeOptions::PER_CHANNEL_7_BITS}) {
    const Tensor weight = Weight(5, 40);
    const Tensor wanted = Dequantized(QuantizeWeight(weight, WeightScales({&weight, nullptr, 0, mode}), mode));
    const Tensor found = Rounded(weight, mode);
    for (int64_t i = 0; i < weight.num_elements(); ++i) {
      EXPECT_NEAR(found.At(i), wanted.At(i), 1e-7 * std::fabs(wanted.At(i))) << mode << ": " << i;
    }
  }
}

class GroupsTest : public ::testing::Test {
 protected:
  GroupsTest() { ops::RegisterAll(ops_); }

  std::vector<Tensor> Run(const char* op, const std::vector<Tensor>& operands, int64_t group_size) {
    const AttributeMap attributes = {{"group_size", group_size}};
    std::vector<ir::Type> types;
    std::vector<std::vector<Tensor>> values;
    for (const Tensor& operand : operands) {
      types.emplace_back(operand.type());
      values.push_back({operand});
    }
    std::vector<const ir::Type*> type_pointers;
    std::vector<const std::vector<Tensor>*> pointers;
    for (size_t i = 0; i < operands.size(); ++i) {
      type_pointers.push_back(&types[i]);
      pointers.push_back(&values[i]);
    }
    const ir::OpSchema& schema = *ops_.FindOrNull(op);
    return *ir::Evaluate(schema, attributes, pointers, *ir::Infer(schema, attributes, type_pointers));
  }

  ir::OpRegistry ops_;
};

TEST_F(GroupsTest, Mxfp4IsThatOfTheOperator) {
  const Tensor weight = Weight(4, 70);
  const std::vector<Tensor> wanted = Run("dynamic_quantize_mxfp4", {weight}, 32);
  const GroupedWeight found = InGroups(weight, QuantizeOptions::MXFP4);
  EXPECT_TRUE(found.codes.SameBytes(wanted[0]));
  EXPECT_TRUE(found.scale.SameBytes(wanted[1]));
  EXPECT_TRUE(Run("dequantize_mxfp4", wanted, 32)[0].SameBytes(Rounded(weight, QuantizeOptions::MXFP4)));
}

TEST_F(GroupsTest, IntegersAreWithinHalfAStep) {
  const Tensor weight = Weight(4, 150);
  for (const auto& [mode, largest] : {std::make_pair(QuantizeOptions::INT4, 7), {QuantizeOptions::INT8_GROUPS, 127}}) {
    for (const int64_t group : {32, 64, 128}) {
      const GroupedWeight found = InGroups(weight, {mode, group});
      ASSERT_EQ(found.scale.shape(), Shape({4, (150 + group - 1) / group}));
      const Tensor values = Run("dequantize_groups", {found.codes, found.scale}, group)[0];
      const Tensor rounded = Rounded(weight, {mode, group});
      for (int64_t i = 0; i < weight.num_elements(); ++i) {
        const double step = found.scale.At(i / 150 * found.scale.dim(1) + i % 150 / group);
        EXPECT_LE(std::fabs(values.At(i) - weight.At(i)), 0.5001 * step);
        EXPECT_LE(std::fabs(found.codes.At(i)), largest);
        EXPECT_NEAR(rounded.At(i), values.At(i), 1e-6 * step * largest);
      }
    }
  }
}

// Codes 0 to 15 in blocks whose scale is that of their largest magnitude, whatever its sign, to -8: as onnxruntime's
// quantizer stores them.
Tensor StoredInBlocks(int64_t rows, int64_t columns, int64_t block) {
  Tensor weight = SeededTensor(Tensor(DType::kF32, {rows, columns}).type(), 3);
  float* values = weight.data<float>();
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t begin = 0; begin < columns; begin += block) {
      float* from = values + row * columns + begin;
      const int64_t size = std::min(block, columns - begin);
      const float largest =
          *std::max_element(from, from + size, [](float a, float b) { return std::fabs(a) < std::fabs(b); });
      const float scale = largest / -8;
      for (int64_t i = 0; i < size; ++i) {
        const int code = static_cast<int>(std::clamp(std::nearbyint(from[i] / scale) + 8.0f, 0.0f, 15.0f));
        from[i] = static_cast<float>(code - 8) * scale;
      }
    }
  }
  return weight;
}

TEST_F(GroupsTest, StoredFourBitsAreFound) {
  for (const int64_t block : {32, 64, 128, 256}) {
    const Tensor weight = StoredInBlocks(6, 300, block);
    const int64_t size = std::min<int64_t>(block, 128);
    ASSERT_EQ(FourBitGroups(weight), std::make_optional(size)) << block;
    const GroupedWeight found = InGroups(weight, {QuantizeOptions::INT4, size});
    const Tensor values = Run("dequantize_groups", {found.codes, found.scale}, size)[0];
    for (int64_t i = 0; i < weight.num_elements(); ++i) {
      EXPECT_NEAR(values.At(i), weight.At(i), 1e-6 * std::fabs(weight.At(i)));
      EXPECT_GE(found.codes.At(i), -8);
      EXPECT_LE(found.codes.At(i), 7);
    }
  }
}

// Codes 0 to 15 in blocks that go from their least element to their largest, whose zero point is a code.
Tensor StoredWithZeroPoints(int64_t rows, int64_t columns, int64_t block) {
  Tensor weight = SeededTensor(Tensor(DType::kF32, {rows, columns}).type(), 5);
  for (int64_t i = 0; i < weight.num_elements(); i += std::min(block, columns - i % columns)) {
    float* const begin = weight.data<float>() + i;
    float* const end = begin + std::min(block, columns - i % columns);
    const float center = static_cast<float>(i / block % 7) / 3 - 1;  // Of -1, no code is positive, or few are.
    for (float* x = begin; x != end; ++x) *x += center;
    const float least = std::min(0.0f, *std::min_element(begin, end)),
                most = std::max(0.0f, *std::max_element(begin, end));
    const float scale = (most - least) / 15, zero_point = std::nearbyint(-least / scale);
    for (float* x = begin; x != end; ++x) {
      *x = (std::clamp(std::nearbyint(*x / scale) + zero_point, 0.0f, 15.0f) - zero_point) * scale;
    }
  }
  return weight;
}

TEST_F(GroupsTest, StoredZeroPointsAreFound) {
  for (const int64_t block : {32, 64, 128}) {
    const Tensor weight = StoredWithZeroPoints(6, 300, block);
    ASSERT_EQ(FourBitGroups(weight), std::make_optional(block));
    const GroupedWeight found = InGroups(weight, {QuantizeOptions::INT4, block});
    const Tensor values = Run("dequantize_groups", {found.codes, found.scale}, block)[0];
    bool beyond = false;  // A code that is none of -8 to 7.
    for (int64_t i = 0; i < weight.num_elements(); ++i) {
      EXPECT_NEAR(values.At(i), weight.At(i), 1e-6 * std::fabs(weight.At(i)));
      beyond = beyond || found.codes.At(i) < -8 || found.codes.At(i) > 7;
    }
    EXPECT_TRUE(beyond);
    for (int64_t i = 0; i < weight.num_elements(); i += std::min(block, 300 - i % 300)) {
      const auto codes = found.codes.values<int8_t>().subspan(i, std::min(block, 300 - i % 300));
      const auto [least, most] = std::minmax_element(codes.begin(), codes.end());
      EXPECT_LE(*most - *least, 15) << i;
    }
    // What rounding to that grid leaves has its values again.
    const Tensor rounded = Rounded(weight, {QuantizeOptions::INT4, block});
    for (int64_t i = 0; i < weight.num_elements(); ++i) EXPECT_NEAR(rounded.At(i), values.At(i), 1e-6);
  }
}

TEST_F(GroupsTest, OtherWeightsHaveNoFourBits) {
  EXPECT_EQ(FourBitGroups(Weight(5, 64)), std::nullopt);
  EXPECT_EQ(FourBitGroups(StoredInBlocks(6, 64, 16)), std::nullopt);
  EXPECT_EQ(FourBitGroups(StoredInBlocks(6, 24, 32)), std::nullopt);  // Fewer than a group.
  Tensor few = StoredInBlocks(6, 64, 32);                             // Eight codes: three bits.
  for (int64_t i = 0; i < few.num_elements(); ++i) few.Set(i, static_cast<double>(i % 8) - 4);
  EXPECT_EQ(FourBitGroups(few), std::nullopt);
  Tensor one = StoredInBlocks(6, 64, 32);
  for (const double value : {one.At(70) * 1.001 + 1e-3, std::nan(""), double{INFINITY}}) {
    one.Set(70, value);
    EXPECT_EQ(FourBitGroups(one), std::nullopt) << value;
  }
}

// What `weight_rounding` leaves on the grid of INT4 has the grid's values again.
TEST_F(GroupsTest, RoundedIsOnItsGrid) {
  const Tensor rounded = Rounded(Weight(4, 150), {QuantizeOptions::INT4, 64});
  const GroupedWeight found = InGroups(rounded, {QuantizeOptions::INT4, 64});
  const Tensor values = Run("dequantize_groups", {found.codes, found.scale}, 64)[0];
  for (int64_t i = 0; i < rounded.num_elements(); ++i) {
    EXPECT_NEAR(values.At(i), rounded.At(i), 1e-6 * std::fabs(rounded.At(i)));
  }
}

TEST(WeightFormatTest, Sizes) {
  EXPECT_OK(CheckFormat({QuantizeOptions::INT4, 0}));
  EXPECT_OK(CheckFormat({QuantizeOptions::PER_CHANNEL, 5}));
  EXPECT_THAT(CheckFormat(QuantizeOptions::PER_CHANNEL_7_OR_8_BITS).ToString(),
              ::testing::HasSubstr("precision FASTEST decides"));
  EXPECT_THAT(CheckFormat({QuantizeOptions::INT4, 16}).ToString(),
              ::testing::HasSubstr("group_size is 16, wanted 32, 64 or 128"));
  EXPECT_EQ(Describe({QuantizeOptions::INT4, 64}), "INT4 in groups of 64");
}

}  // namespace
}  // namespace fuselage::quantize
