#include "ir/ops/topk/topk.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::topk {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TopkTest : public ::testing::Test {
 protected:
  const OpTester ops_{Register};
};

TEST_F(TopkTest, PicksTheFirstOfEqualOnes) {
  const Tensor x = Tensor::Of<float>({2, 4}, {1, 3, 3, 2, 7, 5, 7, 7});
  auto found = *ops_.RunAll("topk", {x}, {{"k", 2}});
  EXPECT_THAT(found[0].values<float>(), ElementsAre(3, 3, 7, 7));
  EXPECT_THAT(found[1].values<int64_t>(), ElementsAre(1, 2, 0, 2));
  found = *ops_.RunAll("topk", {x}, {{"k", 3}, {"largest", false}});
  EXPECT_THAT(found[0].values<float>(), ElementsAre(1, 2, 3, 5, 7, 7));
  EXPECT_THAT(found[1].values<int64_t>(), ElementsAre(0, 3, 1, 1, 0, 2));
  found = *ops_.RunAll("topk", {x}, {{"k", 1}, {"dim", 0}});
  EXPECT_THAT(found[1].values<int64_t>(), ElementsAre(1, 1, 1, 1));
  EXPECT_EQ((*ops_.RunAll("topk", {x}, {{"k", 0}}))[0].num_elements(), 0);
}

TEST_F(TopkTest, NanIsLargest) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  const Tensor x = Tensor::Of<float>({4}, {infinity, nan, 1, nan});
  EXPECT_THAT((*ops_.RunAll("topk", {x}, {{"k", 3}}))[1].values<int64_t>(), ElementsAre(1, 3, 0));
  EXPECT_THAT((*ops_.RunAll("topk", {x}, {{"k", 4}, {"largest", false}}))[1].values<int64_t>(),
              ElementsAre(2, 0, 1, 3));
}

// As doubles the first two would be equal.
TEST_F(TopkTest, IntegersOf64Bits) {
  const int64_t big = int64_t{1} << 60;
  const Tensor x = Tensor::Of<int64_t>({3}, {big, big + 1, 3});
  EXPECT_THAT((*ops_.RunAll("topk", {x}, {{"k", 2}}))[1].values<int64_t>(), ElementsAre(1, 0));
}

TEST_F(TopkTest, TypesAndErrors) {
  const TensorType codes{DType::kU8, {2, 5}, PerTensor(0.5f), Layout::kRowMajor};
  EXPECT_EQ(ops_.Infer("topk", {codes}, {{"k", 2}}), "(u8[2,2]<scale=0.5>, i64[2,2])");
  EXPECT_THAT(ops_.Infer("topk", {codes}, {{"k", 6}}), HasSubstr("wanted a number in [0, 5]"));
  EXPECT_THAT(ops_.Infer("topk", {codes}, {{"k", -1}}), HasSubstr("wanted a number in [0, 5]"));
}

}  // namespace
}  // namespace fuselage::ops::topk
