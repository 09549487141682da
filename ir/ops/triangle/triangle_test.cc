#include "ir/ops/triangle/triangle.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::triangle {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Triangle, KeepsOneSideOfTheDiagonal) {
  const OpTester ops{Register};
  const Tensor x = Iota({2, 3}, 1);
  EXPECT_THAT(ops.Run("tril", {x}).values<float>(), ElementsAre(1, 0, 0, 4, 5, 0));
  EXPECT_THAT(ops.Run("triu", {x}).values<float>(), ElementsAre(1, 2, 3, 0, 5, 6));
  EXPECT_THAT(ops.Run("tril", {x}, {{"diagonal", 1}}).values<float>(), ElementsAre(1, 2, 0, 4, 5, 6));
  EXPECT_THAT(ops.Run("triu", {x}, {{"diagonal", -1}}).values<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(ops.Run("triu", {x}, {{"diagonal", INT64_MAX}}).values<float>(), ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_THAT(ops.Run("tril", {Iota({2, 2, 2}, 1)}).values<float>(), ElementsAre(1, 0, 3, 4, 5, 0, 7, 8));
  EXPECT_EQ(ops.Run("tril", {Tensor(DType::kBool, {0, 3})}).num_elements(), 0);
}

TEST(Triangle, Errors) {
  const OpTester ops{Register};
  EXPECT_THAT(ops.Infer("tril", {Iota({3}).type()}), HasSubstr("rank 1, wanted at least 2"));
  const TensorType codes{DType::kU8, {2, 2}, PerTensor(0.5f, 3), Layout::kRowMajor};
  EXPECT_THAT(ops.Infer("triu", {codes}), HasSubstr("found quantized codes"));
}

}  // namespace
}  // namespace fuselage::ops::triangle
