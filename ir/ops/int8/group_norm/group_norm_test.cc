#include "ir/ops/int8/group_norm/group_norm.h"

#include <algorithm>
#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::int8::group_norm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TensorType Codes(DType dtype, Shape shape, float scale, int zero_point) {
  return {dtype, std::move(shape), PerTensor(scale, zero_point), Layout::kRowMajor};
}

class Int8GroupNormTest : public ::testing::Test {
 protected:
  const OpTester ops_{Register};
};

// Channels 0, 1: mean 4, variance 5. Channels 2, 3: mean 20, variance 500.
TEST_F(Int8GroupNormTest, GroupsOfChannels) {
  Tensor x(Codes(DType::kU8, {1, 4, 2}, 0.5f, 20));
  const double values[] = {1, 3, 5, 7, -10, 10, 30, 50};
  for (int i = 0; i < 8; ++i) x.Set(i, 20 + 2 * values[i]);
  const Tensor weight = Tensor::Of<float>({4}, {1, 1, 1, 2}), bias = Tensor::Of<float>({4}, {0, 10, 0, 0});
  const double s = 1 / std::sqrt(5.0), t = 1 / std::sqrt(500.0);  // Of eps, which is too little to be seen.
  const double wanted[] = {-3 * s, -s, s + 10, 3 * s + 10, -30 * t, -10 * t, 20 * t, 60 * t};
  AttributeMap attributes = {{"num_groups", 2}, {"eps", 1e-12}, {"out_scale", 0.0625}, {"out_zero_point", 30}};
  Tensor y = ops_.Run("int8.group_norm", {x, weight, bias}, attributes);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(y.At(i), std::nearbyint(wanted[i] * 16) + 30) << i;
  attributes.emplace("activation", "relu");
  y = ops_.Run("int8.group_norm", {x, weight, bias}, attributes);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(y.At(i), std::nearbyint(std::max(wanted[i], 0.0) * 16) + 30) << i;
  attributes.insert_or_assign("activation", Attribute("silu"));
  y = ops_.Run("int8.group_norm", {x, weight, bias}, attributes);
  for (int i = 0; i < 8; ++i) {
    EXPECT_NEAR(y.At(i), 16 * wanted[i] / (1 + std::exp(-wanted[i])) + 30, 0.51) << i;
  }
}

TEST_F(Int8GroupNormTest, InstancesWithoutParameters) {
  Tensor x(Codes(DType::kI8, {1, 2, 2, 2}, 0.01f, -5));
  const int codes[] = {-128, 127, -128, 127, 3, 3, 3, 3};
  for (int i = 0; i < 8; ++i) x.Set(i, codes[i]);
  const Tensor y = ops_.Run("int8.instance_norm", {x}, {{"eps", 1e-9}, {"out_dtype", DType::kI8}, {"out_scale", 0.01}});
  EXPECT_THAT(ToDoubles(y), ElementsAre(-100, 100, -100, 100, 0, 0, 0, 0));
}

TEST_F(Int8GroupNormTest, Errors) {
  const TensorType x = Codes(DType::kU8, {1, 4, 2}, 1.0f, 0);
  const auto error = [&](const TensorType& of, AttributeMap attributes) {
    attributes.emplace("out_scale", 1.0);
    return ops_.Infer("int8.group_norm", {of}, attributes);
  };
  EXPECT_EQ(error(x, {{"num_groups", 2}}), "u8[1,4,2]<scale=1>");
  EXPECT_THAT(error(x, {{"num_groups", 3}}), HasSubstr("a divisor of the 4 channels"));
  EXPECT_THAT(error(x, {{"num_groups", 2}, {"eps", 0.0}}), HasSubstr("eps=0.0: wanted above 0"));
  EXPECT_THAT(error(x, {{"num_groups", 2}, {"activation", "softmax"}}), HasSubstr("softmax"));
  EXPECT_THAT(error(Codes(DType::kU8, {1, 4, 1 << 22}, 1.0f, 0), {{"num_groups", 1}}),
              HasSubstr("groups of 16777216 elements, wanted at most 8388608"));
  EXPECT_EQ(ops_.Run("int8.group_norm", {Tensor(Codes(DType::kU8, {0, 4, 2}, 1.0f, 0))},
                     {{"num_groups", 2}, {"out_scale", 1.0}})
                .num_elements(),
            0);
}

}  // namespace
}  // namespace fuselage::ops::int8::group_norm
