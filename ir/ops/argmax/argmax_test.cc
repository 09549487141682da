#include "ir/ops/argmax/argmax.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::argmax {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Argmax, FirstAndLast) {
  const OpTester ops(Register);
  const Tensor x = Tensor::Of<float>({2, 3}, {2, 7, 7, 5, 1, 1});
  const AttributeMap last = {{"dim", 1}, {"select_last_index", true}};
  EXPECT_THAT(ops.Run("argmax", {x}, {{"dim", 1}}).values<int64_t>(), ElementsAre(1, 0));
  EXPECT_THAT(ops.Run("argmax", {x}, last).values<int64_t>(), ElementsAre(2, 0));
  EXPECT_THAT(ops.Run("argmin", {x}, {{"dim", -1}}).values<int64_t>(), ElementsAre(0, 1));
  EXPECT_THAT(ops.Run("argmin", {x}, last).values<int64_t>(), ElementsAre(0, 2));
  EXPECT_THAT(ops.Run("argmax", {x}, {{"dim", 0}}).values<int64_t>(), ElementsAre(1, 0, 0));
  EXPECT_EQ(ops.Infer("argmax", {x.type()}, {{"dim", 0}, {"keepdim", true}}), "i64[1,3]");
}

TEST(Argmax, NanIsTheExtremum) {
  const OpTester ops(Register);
  const Tensor x = Tensor::Of<float>({4}, {1, NAN, 9, NAN});
  for (const char* op : {"argmax", "argmin"}) {
    EXPECT_THAT(ops.Run(op, {x}, {{"dim", 0}}).values<int64_t>(), ElementsAre(1)) << op;
    EXPECT_THAT(ops.Run(op, {x}, {{"dim", 0}, {"select_last_index", true}}).values<int64_t>(), ElementsAre(3)) << op;
  }
}

TEST(Argmax, IntegersBeyondDouble) {
  const OpTester ops(Register);
  const int64_t big = int64_t{1} << 60;
  EXPECT_THAT(ops.Run("argmax", {Tensor::Of<int64_t>({3}, {big, big + 1, big})}, {{"dim", 0}}).values<int64_t>(),
              ElementsAre(1));
}

TEST(Argmax, Errors) {
  const OpTester ops(Register);
  EXPECT_THAT(ops.Infer("argmax", {Iota({2, 0}).type()}, {{"dim", 1}}), HasSubstr("wanted elements along axis 1"));
  EXPECT_EQ(ops.Infer("argmax", {Iota({2, 0}).type()}, {{"dim", 0}}), "i64[0]");
  EXPECT_THAT(ops.Infer("argmin", {Iota({2}).type()}, {{"dim", 1}}), HasSubstr("dim: axis 1 not in"));
}

}  // namespace
}  // namespace fuselage::ops::argmax
