#include "ir/ops/int8/fused_elementwise/fused_elementwise.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/binary/binary.h"
#include "ir/ops/core/testing.h"
#include "ir/ops/unary/unary.h"

namespace fuselage::ops::int8::fused_elementwise {
namespace {

using ::testing::HasSubstr;

void RegisterAll(ir::OpRegistry& registry) {
  binary::Register(registry);
  unary::Register(registry);
  Register(registry);
}

Tensor AllCodes(Shape shape, float scale, int32_t zero_point) {
  Tensor codes(DType::kU8, {256});
  for (int i = 0; i < 256; ++i) codes.data<uint8_t>()[i] = static_cast<uint8_t>(i);
  codes.set_type({DType::kU8, std::move(shape), PerTensor(scale, zero_point), Layout::kRowMajor});
  return codes;
}

AttributeMap Out(DType dtype, double scale, int64_t zero_point, AttributeMap more = {}) {
  more.emplace("out_dtype", dtype);
  more.emplace("out_scale", scale);
  more.emplace("out_zero_point", zero_point);
  return more;
}

class Int8FusedElementwiseTest : public ::testing::Test {
 protected:
  const OpTester ops_{RegisterAll};
};

TEST_F(Int8FusedElementwiseTest, AProductOfAllPairs) {
  const Tensor a = AllCodes({256}, 0.043f, 3), b = AllCodes({256, 1}, 0.071f, 200);
  const Tensor y = ops_.Run("int8.mul", {a, b}, Out(DType::kI8, 0.9, -7));
  ASSERT_EQ(y.shape(), (Shape{256, 256}));
  for (int i = 0; i < 65536; ++i) {
    const float u = static_cast<float>(i % 256 - 3) * 0.043f, v = static_cast<float>(i / 256 - 200) * 0.071f;
    const double code = std::min(127.0, std::max(-128.0, std::nearbyint(u * v / 0.9f) - 7.0));
    ASSERT_EQ(y.At(i), code) << i;
  }
}

TEST_F(Int8FusedElementwiseTest, ASlopeForEachChannel) {
  const Tensor x = AllCodes({1, 256}, 0.05f, 100), slopes = AllCodes({256, 1}, 0.011f, 128);
  const Tensor y = ops_.Run("int8.prelu", {x, slopes}, Out(DType::kU8, 0.06, 110));
  ASSERT_EQ(y.shape(), (Shape{256, 256}));
  for (int i = 0; i < 65536; ++i) {
    const float v = static_cast<float>(i % 256 - 100) * 0.05f, slope = static_cast<float>(i / 256 - 128) * 0.011f;
    const float result = v < 0 ? v * slope : v;
    ASSERT_EQ(y.At(i), std::min(255.0, std::max(0.0, std::nearbyint(result / 0.06f) + 110.0))) << i;
  }
}

// Within a code of the function in double, and where the function is far from a tie equal to it.
TEST_F(Int8FusedElementwiseTest, EveryOpFollowsItsFloatForm) {
  const Tensor x = AllCodes({256}, 0.05f, 120);
  for (const ir::OpSchema* op : ops_.registry().SortedByName()) {
    if (op->name.rfind("int8.", 0) != 0 || op->operands.size() != 1 || op->operands[0].variadic) continue;
    const Tensor y = ops_.Run(op->name, {x}, Out(DType::kU8, 0.026, 60));
    const Tensor wanted = ops_.Run(op->name.substr(5), {Dequantized(x)});
    int different = 0;
    for (int i = 0; i < 256; ++i) {
      const double code = std::min(255.0, std::max(0.0, wanted.At(i) / 0.026 + 60));
      ASSERT_NEAR(y.At(i), code, 0.5001) << op->name << " of code " << i;
      different += y.At(i) != 60;
    }
    EXPECT_GT(different, 50) << op->name;
  }
}

TEST_F(Int8FusedElementwiseTest, AChainRoundsOnce) {
  const Tensor a = AllCodes({256}, 0.05f, 128), b = AllCodes({256, 1}, 0.03f, 0);
  const Tensor y = ops_.Run(
      "int8.fused_elementwise", {a, b},
      Out(DType::kU8, 0.02, 0, {{"steps", Attribute(std::vector<std::string>{"add(0, 1)", "relu(2)", "mul(3, 0)"})}}));
  for (int i = 0; i < 65536; ++i) {
    const float u = static_cast<float>(i % 256 - 128) * 0.05f, v = static_cast<float>(i / 256) * 0.03f;
    const float z = std::fmax(u + v, 0.0f) * u;
    ASSERT_EQ(y.At(i), std::min(255.0, std::max(0.0, static_cast<double>(std::nearbyint(z / 0.02f))))) << i;
  }
}

TEST_F(Int8FusedElementwiseTest, Errors) {
  const TensorType x{DType::kU8, {2}, PerTensor(0.5f), Layout::kRowMajor};
  const TensorType plain{DType::kF32, {2}, std::nullopt, Layout::kRowMajor};
  EXPECT_THAT(ops_.Infer("int8.mul", {x, plain}), HasSubstr("other f32[2]: wanted u8 or i8 codes with one scale"));
  EXPECT_THAT(ops_.Infer("int8.gelu", {x}, {{"approximate", "some"}}), HasSubstr("approximate=\"some\""));
  EXPECT_THAT(ops_.Infer("int8.sigmoid", {x}, {{"out_dtype", DType::kF32}}), HasSubstr("out_dtype=f32"));
  EXPECT_THAT(ops_.Infer("int8.fused_elementwise", {x}, {{"steps", Attribute(std::vector<std::string>{"softmax(0)"})}}),
              HasSubstr("'softmax' is no elementwise step"));
}

}  // namespace
}  // namespace fuselage::ops::int8::fused_elementwise
