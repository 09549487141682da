#include "ir/ops/binary/binary.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::binary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TensorType F32(Shape shape) { return {DType::kF32, std::move(shape), std::nullopt, Layout::kRowMajor}; }

class BinaryTest : public ::testing::Test {
 protected:
  const OpTester ops_{Register};
};

TEST_F(BinaryTest, Floats) {
  const Tensor a = Tensor::Of<float>({3}, {1, -2, 3}), b = Tensor::Of<float>({3}, {4, -5, -6});
  EXPECT_THAT(ops_.Run("add", {a, b}).values<float>(), ElementsAre(5, -7, -3));
  EXPECT_THAT(ops_.Run("add", {a, b}, {{"alpha", 0.5}}).values<float>(), ElementsAre(3, -4.5, 0));
  EXPECT_THAT(ops_.Run("add", {a, b}, {{"activation", "relu"}}).values<float>(), ElementsAre(5, 0, 0));
  EXPECT_THAT(ops_.Run("sub", {a, b}).values<float>(), ElementsAre(-3, 3, 9));
  EXPECT_THAT(ops_.Run("mul", {a, b}).values<float>(), ElementsAre(4, 10, -18));
  EXPECT_THAT(ops_.Run("div", {b, a}).values<float>(), ElementsAre(4, 2.5, -2));
  EXPECT_TRUE(std::isinf(ops_.Run("div", {Tensor::Scalar(1.0f), Tensor::Scalar(0.0f)}).At(0)));
}

TEST_F(BinaryTest, Broadcasting) {
  const Tensor row = Tensor::Of<float>({3}, {0, 1, 2}), column = Tensor::Of<float>({2, 1}, {10, 20});
  const Tensor sum = ops_.Run("add", {row, column});
  EXPECT_EQ(sum.shape(), (Shape{2, 3}));
  EXPECT_THAT(sum.values<float>(), ElementsAre(10, 11, 12, 20, 21, 22));
  EXPECT_THAT(ops_.Run("sub", {column, Tensor::Scalar(1.0f)}).values<float>(), ElementsAre(9, 19));
  EXPECT_EQ(ops_.Run("mul", {Iota({2, 0, 3}), Iota({1, 3})}).shape(), (Shape{2, 0, 3}));
}

TEST_F(BinaryTest, Integers) {
  const Tensor a = Tensor::Of<int32_t>({3}, {7, -7, INT32_MIN}), b = Tensor::Of<int32_t>({3}, {2, 2, -1});
  EXPECT_THAT(ops_.Run("div", {a, b}).values<int32_t>(), ElementsAre(3, -3, INT32_MIN));
  EXPECT_THAT(ops_.Run("add", {a, b}, {{"alpha", 3.0}}).values<int32_t>(), ElementsAre(13, -1, INT32_MAX - 2));
  EXPECT_THAT(ops_.Run("add", {a, b}, {{"activation", "relu"}}).values<int32_t>(), ElementsAre(9, 0, INT32_MAX));
  const Tensor u = Tensor::Of<uint8_t>({1}, {200});
  EXPECT_THAT(ops_.Run("mul", {u, u}).values<uint8_t>(), ElementsAre(40000 % 256));
  const int64_t big = int64_t{1} << 60;
  EXPECT_THAT(ops_.Run("sub", {Tensor::Of<int64_t>({1}, {big}), Tensor::Of<int64_t>({1}, {1})}).values<int64_t>(),
              ElementsAre(big - 1));
  EXPECT_THAT(ops_.RunAll("div", {a, Tensor::Scalar<int32_t>(0)}).status().ToString(),
              HasSubstr("division of the integer 7 by zero at element 0"));
}

TEST_F(BinaryTest, MoreFloats) {
  const Tensor a = Tensor::Of<float>({4}, {5, -5, 5, -5}), b = Tensor::Of<float>({4}, {3, 3, -3, -3});
  EXPECT_THAT(ops_.Run("fmod", {a, b}).values<float>(), ElementsAre(2, -2, 2, -2));
  EXPECT_THAT(ops_.Run("remainder", {a, b}).values<float>(), ElementsAre(2, 1, -1, -2));
  EXPECT_THAT(ops_.Run("maximum", {a, b}).values<float>(), ElementsAre(5, 3, 5, -3));
  EXPECT_THAT(ops_.Run("minimum", {a, b}).values<float>(), ElementsAre(3, -5, -3, -5));
  EXPECT_THAT(ops_.Run("prelu", {a, Tensor::Scalar(0.5f)}).values<float>(), ElementsAre(5, -2.5, 5, -2.5));
  EXPECT_THAT(
      ops_.Run("pow", {Tensor::Of<float>({3}, {2, 9, 2}), Tensor::Of<float>({3}, {3, 0.5, -1})}).values<float>(),
      ElementsAre(8, 3, 0.5));
  for (const char* op : {"maximum", "minimum"}) {
    EXPECT_TRUE(std::isnan(ops_.Run(op, {Tensor::Scalar(NAN), Tensor::Scalar(1.0f)}).At(0))) << op;
    EXPECT_TRUE(std::isnan(ops_.Run(op, {Tensor::Scalar(1.0f), Tensor::Scalar(NAN)}).At(0))) << op;
  }
}

TEST_F(BinaryTest, Comparisons) {
  const Tensor a = Tensor::Of<float>({4}, {1, 2, 3, NAN}), b = Tensor::Of<float>({4}, {2, 2, 2, NAN});
  const auto run = [&](const char* op) {
    const Tensor y = ops_.Run(op, {a, b});
    return std::vector<bool>(y.values<bool>().begin(), y.values<bool>().end());
  };
  EXPECT_THAT(run("eq"), ElementsAre(false, true, false, false));
  EXPECT_THAT(run("ne"), ElementsAre(true, false, true, true));
  EXPECT_THAT(run("gt"), ElementsAre(false, false, true, false));
  EXPECT_THAT(run("ge"), ElementsAre(false, true, true, false));
  EXPECT_THAT(run("lt"), ElementsAre(true, false, false, false));
  EXPECT_THAT(run("le"), ElementsAre(true, true, false, false));
  const int64_t big = int64_t{1} << 60;
  EXPECT_THAT(ops_.Run("eq", {Tensor::Scalar(big), Tensor::Scalar(big + 1)}).values<bool>(), ElementsAre(false));
}

TEST_F(BinaryTest, BoolsAndBits) {
  const Tensor a = Tensor::Of<bool>({4}, {false, false, true, true}),
               b = Tensor::Of<bool>({4}, {false, true, false, true});
  EXPECT_THAT(ops_.Run("logical_and", {a, b}).values<bool>(), ElementsAre(false, false, false, true));
  EXPECT_THAT(ops_.Run("logical_or", {a, b}).values<bool>(), ElementsAre(false, true, true, true));
  EXPECT_THAT(ops_.Run("logical_xor", {a, b}).values<bool>(), ElementsAre(false, true, true, false));
  EXPECT_THAT(ops_.Run("eq", {a, b}).values<bool>(), ElementsAre(true, false, false, true));
  const Tensor x = Tensor::Of<uint8_t>({3}, {12, 200, 255}), y = Tensor::Of<uint8_t>({3}, {10, 1, 64});
  EXPECT_THAT(ops_.Run("bitwise_and", {x, y}).values<uint8_t>(), ElementsAre(8, 0, 64));
  EXPECT_THAT(ops_.Run("bitwise_or", {x, y}).values<uint8_t>(), ElementsAre(14, 201, 255));
  EXPECT_THAT(ops_.Run("bitwise_xor", {x, y}).values<uint8_t>(), ElementsAre(6, 201, 191));
  EXPECT_THAT(ops_.Run("bitwise_left_shift", {x, y}).values<uint8_t>(), ElementsAre(0, 144, 0));
  EXPECT_THAT(ops_.Run("bitwise_right_shift", {x, y}).values<uint8_t>(), ElementsAre(0, 100, 0));
}

TEST_F(BinaryTest, MoreIntegers) {
  const Tensor a = Tensor::Of<int32_t>({4}, {5, -5, 5, -5}), b = Tensor::Of<int32_t>({4}, {3, 3, -3, -3});
  EXPECT_THAT(ops_.Run("fmod", {a, b}).values<int32_t>(), ElementsAre(2, -2, 2, -2));
  EXPECT_THAT(ops_.Run("remainder", {a, b}).values<int32_t>(), ElementsAre(2, 1, -1, -2));
  EXPECT_THAT(ops_.Run("remainder", {Tensor::Scalar(INT64_MIN), Tensor::Scalar(int64_t{-1})}).values<int64_t>(),
              ElementsAre(0));
  EXPECT_THAT(ops_.Run("pow", {a, b}).values<int32_t>(), ElementsAre(125, -125, 0, 0));
  EXPECT_THAT(ops_.Run("pow", {Tensor::Scalar(int64_t{3}), Tensor::Scalar(int64_t{39})}).values<int64_t>(),
              ElementsAre(4052555153018976267));
  for (const char* op : {"div", "fmod", "remainder"}) {
    EXPECT_THAT(ops_.RunAll(op, {a, Tensor::Scalar<int32_t>(0)}).status().ToString(), HasSubstr("by zero")) << op;
  }
  EXPECT_THAT(ops_.RunAll("pow", {Tensor::Scalar(0), Tensor::Scalar(-1)}).status().ToString(), HasSubstr("by zero"));
  EXPECT_THAT(ops_.Infer("logical_and", {a.type(), b.type()}), HasSubstr("wanted element type bool"));
  EXPECT_THAT(ops_.Infer("bitwise_and", {F32({2}), F32({2})}), HasSubstr("wanted integers"));
}

TEST_F(BinaryTest, Errors) {
  EXPECT_THAT(ops_.Infer("add", {F32({2}), F32({3})}), HasSubstr("shapes [2] and [3] do not broadcast"));
  EXPECT_THAT(ops_.Infer("mul", {F32({2}), {{DType::kF16, {2}, std::nullopt, Layout::kRowMajor}}}),
              HasSubstr("other f16[2]: wanted element type f32"));
  EXPECT_THAT(ops_.Infer("add", {F32({2}), F32({2})}, {{"activation", "tanh"}}), HasSubstr("activation=\"tanh\""));
  EXPECT_THAT(ops_.Infer("add", {F32({2}), F32({2})}, {{"alpha", std::nan("")}}), HasSubstr("alpha=nan"));
  const TensorType i32{DType::kI32, {2}, std::nullopt, Layout::kRowMajor};
  EXPECT_THAT(ops_.Infer("add", {i32, i32}, {{"alpha", 0.5}}), HasSubstr("alpha=0.5: wanted a whole number"));
  EXPECT_THAT(ops_.Infer("add", {F32({int64_t{1} << 40, 1}), F32({1, int64_t{1} << 40})}), HasSubstr("overflows"));
  const TensorType codes{DType::kU8, {2}, PerTensor(0.5f), Layout::kRowMajor};
  EXPECT_THAT(ops_.Infer("add", {codes, codes}), HasSubstr("dequantize them first"));
}

TEST_F(BinaryTest, Aliases) {
  for (const char* alias : {"torch.add", "operator.add", "operator.iadd", "add_"}) {
    EXPECT_EQ(ops_.registry().FindOrNull(alias)->name, "add") << alias;
  }
  EXPECT_EQ(ops_.registry().FindOrNull("torch.div"), nullptr);
}

}  // namespace
}  // namespace fuselage::ops::binary
