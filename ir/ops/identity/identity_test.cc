#include "ir/ops/identity/identity.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::identity {
namespace {

using ::testing::HasSubstr;

TEST(IdentityTest, AnyTypeAndItsParameters) {
  const OpTester ops(Register);
  Tensor x = Tensor::Of<uint8_t>({2}, {1, 2});
  x.set_type({DType::kU8, {2}, PerTensor(0.5f, 7), Layout::kRowMajor});
  EXPECT_TRUE(ops.Run("identity", {x}).SameBytes(x));
  EXPECT_EQ(ops.registry().FindOrNull("contiguous")->name, "identity");
}

TEST(IdentityTest, Dropout) {
  const OpTester ops(Register);
  const Tensor x = Iota({3});
  EXPECT_TRUE(ops.Run("dropout", {x}).SameBytes(x));
  EXPECT_TRUE(ops.Run("dropout", {x}, {{"training", true}, {"p", 0.0}}).SameBytes(x));
  EXPECT_EQ(ops.RunAll("dropout", {x}, {{"training", true}}).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(ops.Infer("dropout", {x.type()}, {{"p", 1.5}}), HasSubstr("p=1.5: wanted a probability"));
}

}  // namespace
}  // namespace fuselage::ops::identity
