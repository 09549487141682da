#include "ir/ops/cast/cast.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::cast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CastTest : public ::testing::Test {
 protected:
  const OpTester ops_{Register};
};

TEST_F(CastTest, Values) {
  const Tensor x = Tensor::Of<float>({6}, {1.5, -1.9, 300, -300, std::nanf(""), 0});
  EXPECT_THAT(ops_.Run("to", {x}, {{"dtype", DType::kI32}}).values<int32_t>(), ElementsAre(1, -1, 300, -300, 0, 0));
  EXPECT_THAT(ops_.Run("to", {x}, {{"dtype", DType::kU8}}).values<uint8_t>(), ElementsAre(1, 0, 255, 0, 0, 0));
  EXPECT_THAT(ops_.Run("to", {x}, {{"dtype", DType::kBool}}).values<bool>(),
              ElementsAre(true, true, true, true, true, false));
  EXPECT_EQ(ops_.Run("to", {x}, {{"dtype", DType::kF16}}).At(1), -1.900390625);
  const int64_t big = (int64_t{1} << 62) + 1;
  const Tensor wide = Tensor::Of<int64_t>({2}, {big, 257});
  EXPECT_THAT(ops_.Run("to", {wide}, {{"dtype", DType::kI64}}).values<int64_t>(), ElementsAre(big, 257));
  EXPECT_THAT(ops_.Run("to", {wide}, {{"dtype", DType::kU8}}).values<uint8_t>(), ElementsAre(1, 1));
  EXPECT_THAT(ops_.Run("to", {wide}, {{"dtype", DType::kBool}}).values<bool>(), ElementsAre(true, true));
}

TEST_F(CastTest, CodesAreNoValues) {
  const TensorType codes{DType::kU8, {2}, PerTensor(0.5f), Layout::kRowMajor};
  EXPECT_THAT(ops_.Infer("to", {codes}, {{"dtype", DType::kF32}}), HasSubstr("dequantize them first"));
}

}  // namespace
}  // namespace fuselage::ops::cast
