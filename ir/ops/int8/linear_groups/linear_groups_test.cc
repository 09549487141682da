#include "ir/ops/int8/linear_groups/linear_groups.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::int8::linear_groups {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LinearGroupsTest : public ::testing::Test {
 protected:
  // Two rows, two channels, 33 features: the second group is one feature.
  LinearGroupsTest() {
    for (int k = 0; k < 33; ++k) {
      x_.Set(k, 1);
      x_.Set(33 + k, k == 32 ? -127 : 2);
      w_.Set(k, k % 16);                // 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives: 32 of them add up to 0.
      w_.Set(33 + k, k < 32 ? 7 : 13);  // 6; -3.
    }
  }

  const OpTester ops_{Register};
  Tensor x_{{DType::kI8, {2, 33}, std::nullopt, Layout::kRowMajor}};
  Tensor w_{{DType::kU8, {2, 33}, std::nullopt, Layout::kRowMajor}};
  const Tensor bias_ = Tensor::Of<float>({2}, {1, -1});
  const Tensor weight_scale_ = Tensor::Of<uint8_t>({2, 2}, {127, 127, 126, 129});  // 1, 1; 1/2, 4.
  const Tensor input_scale_ = Tensor::Of<float>({2, 1}, {0.5f, 2});
};

TEST_F(LinearGroupsTest, GroupsAddUp) {
  const OpTester::Operands operands = {x_, w_, weight_scale_, input_scale_, bias_};
  // Channel 1 of row 0: 32 * 6 / 2 - 3 * 4 = 84; of row 1: 2 * 32 * 6 / 2 + 127 * 3 * 4 = 1716.
  EXPECT_THAT(ops_.Run("int8.linear_groups", operands).values<float>(), ElementsAre(1, 41, 1, 3431));
  EXPECT_THAT(ops_.Run("int8.linear_groups", operands, {{"activation", "relu"}}).values<float>(),
              ElementsAre(1, 41, 1, 3431));
}

// The same numbers as i8 codes: twice those of MXFP4, by half the scales.
TEST_F(LinearGroupsTest, IntegersInGroups) {
  Tensor codes({DType::kI8, {2, 33}, std::nullopt, Layout::kRowMajor});
  const int doubled[] = {0, 1, 2, 3, 4, 6, 8, 12};
  for (int i = 0; i < 66; ++i) codes.Set(i, (w_.At(i) < 8 ? 1 : -1) * doubled[static_cast<int>(w_.At(i)) % 8]);
  const Tensor scale = Tensor::Of<float>({2, 2}, {0.5f, 0.5f, 0.25f, 2});
  EXPECT_THAT(ops_.Run("int8.linear_groups", {x_, codes, scale, input_scale_, bias_}).values<float>(),
              ElementsAre(1, 41, 1, 3431));
  // One group: 0 for channel 0 whatever its scale, (32 * 12 - 6) / 16 for channel 1 of row 0.
  const Tensor one = Tensor::Of<float>({2, 1}, {7, 0.0625f});
  EXPECT_THAT(ops_.Run("int8.linear_groups", {x_, codes, one, input_scale_, bias_}, {{"group_size", 64}}).At(1),
              (32 * 12 - 6) / 16.0 * 0.5 - 1);
}

TEST_F(LinearGroupsTest, Errors) {
  const auto infer = [&](const Tensor& x, const Tensor& w, const Tensor& ws, const Tensor& xs) {
    return ops_.Infer("int8.linear_groups", {x.type(), w.type(), ws.type(), xs.type(), bias_.type()});
  };
  EXPECT_EQ(infer(x_, w_, weight_scale_, input_scale_), "f32[2,2]");
  EXPECT_THAT(infer(w_, w_, weight_scale_, input_scale_), HasSubstr("wanted element type i8"));
  EXPECT_THAT(infer(x_, x_, weight_scale_, input_scale_), HasSubstr("wanted element type f32"));
  EXPECT_THAT(infer(x_, bias_, weight_scale_, input_scale_), HasSubstr("wanted element type i8"));
  EXPECT_THAT(infer(x_, w_, Tensor::Of<uint8_t>({2, 1}, {127, 127}), input_scale_), HasSubstr("wanted shape [2,2]"));
  EXPECT_THAT(infer(x_, w_, weight_scale_, Tensor::Of<float>({2}, {1, 1})), HasSubstr("wanted shape [2,1]"));
}

}  // namespace
}  // namespace fuselage::ops::int8::linear_groups
