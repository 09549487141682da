#include "ir/ops/cumsum/cumsum.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::cumsum {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Cumsum, Forms) {
  const OpTester ops(Register);
  const Tensor x = Tensor::Of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto run = [&](int64_t dim, bool exclusive, bool reverse) {
    const Tensor y = ops.Run("cumsum", {x}, {{"dim", dim}, {"exclusive", exclusive}, {"reverse", reverse}});
    return std::vector<float>(y.values<float>().begin(), y.values<float>().end());
  };
  EXPECT_THAT(run(1, false, false), ElementsAre(1, 3, 6, 4, 9, 15));
  EXPECT_THAT(run(-2, false, false), ElementsAre(1, 2, 3, 5, 7, 9));
  EXPECT_THAT(run(1, true, false), ElementsAre(0, 1, 3, 0, 4, 9));
  EXPECT_THAT(run(1, false, true), ElementsAre(6, 5, 3, 15, 11, 6));
  EXPECT_THAT(run(1, true, true), ElementsAre(5, 3, 0, 11, 6, 0));
  EXPECT_EQ(ops.Run("cumsum", {Iota({2, 0})}, {{"dim", 0}}).shape(), (Shape{2, 0}));
}

TEST(Cumsum, IntegersWrap) {
  const OpTester ops(Register);
  EXPECT_THAT(ops.Run("cumsum", {Tensor::Of<int32_t>({2}, {INT32_MAX, 1})}, {{"dim", 0}}).values<int32_t>(),
              ElementsAre(INT32_MAX, INT32_MIN));
  EXPECT_THAT(ops.Run("cumsum", {Tensor::Of<int64_t>({2}, {INT64_MAX, 1})}, {{"dim", 0}}).values<int64_t>(),
              ElementsAre(INT64_MAX, INT64_MIN));
}

TEST(Cumsum, Errors) {
  const OpTester ops(Register);
  EXPECT_THAT(ops.Infer("cumsum", {Iota({2}).type()}, {{"dim", 1}}), HasSubstr("dim: axis 1 not in [-1, 1)"));
  EXPECT_THAT(ops.Infer("cumsum", {Tensor::Of<bool>({1}, {true}).type()}, {{"dim", 0}}), HasSubstr("wanted numbers"));
}

}  // namespace
}  // namespace fuselage::ops::cumsum
