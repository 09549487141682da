#include "ir/ops/int8/pool/pool.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::int8::pool {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ints = std::vector<int64_t>;

Tensor Quantized(Tensor codes, QuantParams params) {
  codes.set_type({codes.dtype(), codes.shape(), std::move(params), Layout::kRowMajor});
  return codes;
}
AttributeMap Pool(Ints kernel, Ints stride, Ints padding, AttributeMap more = {}) {
  more.emplace("kernel_size", std::move(kernel));
  more.emplace("stride", std::move(stride));
  more.emplace("padding", std::move(padding));
  return more;
}

class Int8PoolTest : public ::testing::Test {
 protected:
  const OpTester ops_{Register};
};

TEST_F(Int8PoolTest, MaxKeepsTheParameters) {
  const Tensor x = Quantized(Tensor::Of<int8_t>({1, 1, 1, 3}, {-128, -3, -100}), PerTensor(0.5f, -9));
  const Tensor y = ops_.Run("int8.max_pool2d", {x}, Pool({1, 2}, {1, 1}, {0, 1, 0, 1}));
  EXPECT_THAT(y.values<int8_t>(), ElementsAre(-128, -3, -3, -100));
  EXPECT_EQ(y.type().quant, x.type().quant);
  EXPECT_THAT(ops_.Infer("int8.max_pool2d", {x.type()}, Pool({1, 2}, {1, 1}, {0, 0, 0, 0}, {{"out_scale", 1.0}})),
              HasSubstr("no attribute 'out_scale'"));
}

TEST_F(Int8PoolTest, AvgDividesByWhatTheWindowHolds) {
  const Tensor x = Quantized(Tensor::Of<uint8_t>({1, 1, 1, 3}, {12, 14, 17}), PerTensor(0.5f, 10));  // 2, 4, 7
  AttributeMap attributes = Pool({1, 2}, {1, 1}, {0, 1, 0, 1}, {{"out_scale", 0.25}, {"out_zero_point", 1}});
  EXPECT_THAT(ops_.Run("int8.avg_pool2d", {x}, attributes).values<uint8_t>(), ElementsAre(5, 7, 12, 15));
  attributes.emplace("count_include_pad", true);
  EXPECT_THAT(ops_.Run("int8.avg_pool2d", {x}, attributes).values<uint8_t>(), ElementsAre(3, 7, 12, 8));
}

TEST_F(Int8PoolTest, GlobalAvgFollowsTheArithmetic) {
  const float s_x = 0.013f, s_y = 0.007f;
  const Tensor x = SeededTensor({DType::kU8, {2, 5, 7, 7}, PerTensor(s_x, 131), Layout::kRowMajor}, 1);
  const Tensor y = ops_.Run("int8.global_avg_pool", {x}, {{"out_dtype", DType::kI8}, {"out_scale", s_y}});
  ASSERT_EQ(y.shape(), (Shape{2, 5, 1, 1}));
  for (int64_t i = 0; i < 10; ++i) {
    int32_t sum = 0;
    for (int64_t k = 0; k < 49; ++k) sum += x.data<uint8_t>()[i * 49 + k] - 131;
    const float v = static_cast<float>(sum) * (s_x / (s_y * 49.0f));
    EXPECT_EQ(y.At(i), std::min(127.0f, std::max(-128.0f, std::nearbyint(v)))) << i;
  }
}

TEST_F(Int8PoolTest, Errors) {
  const TensorType plain{DType::kF32, {1, 1, 2, 2}, std::nullopt, Layout::kRowMajor};
  EXPECT_THAT(ops_.Infer("int8.avg_pool2d", {plain}, Pool({1, 1}, {1, 1}, {0, 0, 0, 0})), HasSubstr("u8 or i8 codes"));
  const TensorType empty{DType::kU8, {1, 1, 0, 2}, PerTensor(1), Layout::kRowMajor};
  EXPECT_THAT(ops_.Infer("int8.global_avg_pool", {empty}), HasSubstr("the mean of no elements"));
  const Tensor large(TensorType{DType::kU8, {1, 1, 2902, 2902}, PerTensor(1), Layout::kRowMajor});
  EXPECT_THAT(ops_.RunAll("int8.global_avg_pool", {large}).status().ToString(), HasSubstr("may overflow 32 bits"));
}

}  // namespace
}  // namespace fuselage::ops::int8::pool
