#include "ir/ops/expand/expand.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::expand {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ints = std::vector<int64_t>;

class ExpandTest : public ::testing::Test {
 protected:
  const OpTester ops_{Register};
};

TEST_F(ExpandTest, RepeatsElements) {
  const Tensor x = Iota({2, 1});
  EXPECT_THAT(ops_.Run("expand", {x}, {{"shape", Ints{-1, 3}}}).values<float>(), ElementsAre(0, 0, 0, 1, 1, 1));
  const Tensor y = ops_.Run("expand", {x}, {{"shape", Ints{2, 2, 2}}});
  EXPECT_EQ(y.shape(), (Shape{2, 2, 2}));
  EXPECT_THAT(y.values<float>(), ElementsAre(0, 0, 1, 1, 0, 0, 1, 1));
  EXPECT_EQ(ops_.Run("expand", {x}, {{"shape", Ints{0, 2, 1}}}).num_elements(), 0);
}

TEST_F(ExpandTest, BatchIsTheSizeOfAxis0) {
  const TensorType token{DType::kF32, {1, 3}, std::nullopt, Layout::kRowMajor};
  EXPECT_EQ(ops_.Infer("expand", {token}, {{"shape", Ints{-1, 3}}, {"batch", 4}}), "f32[4,3]");
  EXPECT_EQ(ops_.Infer("expand", {token}, {{"shape", Ints{2, 1, 3}}, {"batch", 5}}), "f32[5,1,3]");
  EXPECT_THAT(ops_.Infer("expand", {token}, {{"shape", Ints{-1, 3}}, {"batch", -1}}), HasSubstr("a size >= 0"));
  const TensorType two{DType::kF32, {2, 3}, std::nullopt, Layout::kRowMajor};
  EXPECT_THAT(ops_.Infer("expand", {two}, {{"shape", Ints{-1, 3}}, {"batch", 4}}), HasSubstr("wanted 2 or -1 on axis 0"));
}

TEST_F(ExpandTest, TypesAndErrors) {
  const TensorType codes{DType::kU8, {1, 3}, PerTensor(0.5f), Layout::kRowMajor};
  EXPECT_EQ(ops_.Infer("expand", {codes}, {{"shape", Ints{4, -1}}}), "u8[4,3]<scale=0.5>");
  const TensorType per_axis{DType::kI8, {1, 2}, PerAxis(1, {0.5f, 0.25f}), Layout::kRowMajor};
  EXPECT_THAT(ops_.Infer("expand", {per_axis}, {{"shape", Ints{2, 2}}}), HasSubstr("wanted one scale"));
  EXPECT_THAT(ops_.Infer("expand", {codes}, {{"shape", Ints{3}}}), HasSubstr("at least 2 dimensions"));
  EXPECT_THAT(ops_.Infer("expand", {codes}, {{"shape", Ints{1, 4}}}), HasSubstr("wanted 3 or -1 on axis 1 for [1,3]"));
  EXPECT_THAT(ops_.Infer("expand", {codes}, {{"shape", Ints{-2, 3}}}), HasSubstr("wanted 1 or -1 on axis 0"));
  EXPECT_THAT(ops_.Infer("expand", {codes}, {{"shape", Ints{-1, 1, 3}}}), HasSubstr("of the new axis 0"));
  EXPECT_THAT(ops_.Infer("expand", {codes}, {{"shape", Ints{int64_t{1} << 62, 3}}}), HasSubstr("overflow"));
}

}  // namespace
}  // namespace fuselage::ops::expand
