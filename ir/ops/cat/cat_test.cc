#include "ir/ops/cat/cat.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::cat {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TensorType F32(Shape shape) { return {DType::kF32, std::move(shape), std::nullopt, Layout::kRowMajor}; }

class CatTest : public ::testing::Test {
 protected:
  const OpTester ops_{Register};
};

TEST_F(CatTest, Joins) {
  const Tensor a = Iota({2, 1}), b = Iota({2, 2}, 10);
  EXPECT_THAT(ops_.Run("cat", {a, b}, {{"dim", 1}}).values<float>(), ElementsAre(0, 10, 11, 1, 12, 13));
  EXPECT_THAT(ops_.Run("cat", {a, a}).values<float>(), ElementsAre(0, 1, 0, 1));
  EXPECT_EQ(ops_.Run("cat", {a, Iota({2, 0}), b}, {{"dim", -1}}).shape(), (Shape{2, 3}));
  EXPECT_THAT(ops_.Run("cat", {b}).values<float>(), ElementsAre(10, 11, 12, 13));
  EXPECT_THAT(ops_.Run("cat", {Tensor::Of<int64_t>({1}, {INT64_MAX}), Tensor::Of<int64_t>({1}, {2})}).values<int64_t>(),
              ElementsAre(INT64_MAX, 2));
}

TEST_F(CatTest, CodesOfOneScale) {
  const TensorType a{DType::kU8, {1, 2}, PerTensor(0.5f, 3), Layout::kRowMajor};
  const TensorType b{DType::kU8, {1, 2}, PerTensor(0.25f, 3), Layout::kRowMajor};
  EXPECT_EQ(ops_.Infer("cat", {a, a}), "u8[2,2]<scale=0.5, zp=3>");
  EXPECT_THAT(ops_.Infer("cat", {a, b}), HasSubstr("wanted the quantization parameters of u8[1,2]<scale=0.5, zp=3>"));
}

TEST_F(CatTest, Errors) {
  EXPECT_THAT(ops_.Infer("cat", {F32({2, 3}), F32({2, 4})}), HasSubstr("inputs f32[2,4]: wanted shape [2,3]"));
  EXPECT_THAT(ops_.Infer("cat", {F32({2, 3}), F32({3})}), HasSubstr("wanted shape [2,3]"));
  EXPECT_THAT(ops_.Infer("cat", {F32({2}), {{DType::kF16, {2}, std::nullopt, Layout::kRowMajor}}}),
              HasSubstr("wanted element type f32"));
  EXPECT_THAT(ops_.Infer("cat", {F32({2})}, {{"dim", 1}}), HasSubstr("dim: axis 1 not in [-1, 1)"));
  EXPECT_THAT(ops_.Infer("cat", {F32({})}), HasSubstr("axis 0 not in"));
  EXPECT_THAT(ops_.Infer("cat", {}), HasSubstr("missing"));
  EXPECT_THAT(ops_.Infer("cat", {F32({INT64_MAX, 0}), F32({INT64_MAX, 0})}), HasSubstr("overflows"));
}

}  // namespace
}  // namespace fuselage::ops::cat
