#include "ir/ops/pad/pad.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::pad {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ints = std::vector<int64_t>;

TensorType F32(Shape shape) { return {DType::kF32, std::move(shape), std::nullopt, Layout::kRowMajor}; }

class PadTest : public ::testing::Test {
 protected:
  std::vector<double> Pad(const Tensor& x, Ints pads, std::string mode = "constant", double value = 0) {
    return ToDoubles(ops_.Run("pad", {x}, {{"pads", pads}, {"mode", mode}, {"value", value}}));
  }
  const OpTester ops_{Register};
};

TEST_F(PadTest, Modes) {
  const Tensor x = Tensor::Of<float>({3}, {1, 2, 3});
  EXPECT_THAT(Pad(x, {1, 2}), ElementsAre(0, 1, 2, 3, 0, 0));
  EXPECT_THAT(Pad(x, {1, 0}, "constant", 9), ElementsAre(9, 1, 2, 3));
  EXPECT_THAT(Pad(x, {2, 2}, "edge"), ElementsAre(1, 1, 1, 2, 3, 3, 3));
  EXPECT_THAT(Pad(x, {2, 2}, "reflect"), ElementsAre(3, 2, 1, 2, 3, 2, 1));
  EXPECT_THAT(Pad(x, {4, 2}, "wrap"), ElementsAre(3, 1, 2, 3, 1, 2, 3, 1, 2));
  EXPECT_THAT(Pad(x, {-1, 1}), ElementsAre(2, 3, 0));
}

TEST_F(PadTest, SeveralAxesAndIntegers) {
  EXPECT_THAT(Pad(Tensor::Of<int32_t>({1, 2}, {5, 6}), {1, 0, 0, 1}, "constant", 7), ElementsAre(7, 7, 7, 5, 6, 7));
  EXPECT_THAT(Pad(Iota({2, 2}), {0, 1, 1, 0}, "edge"), ElementsAre(0, 0, 1, 2, 2, 3, 2, 2, 3));
  EXPECT_THAT(Pad(Iota({0, 2}), {1, 0, 0, 0}, "constant", 4), ElementsAre(4, 4));
  EXPECT_THAT(Pad(Tensor::Scalar(3.0f), {}), ElementsAre(3));
}

TEST_F(PadTest, CodesArePaddedWithTheirZeroPoint) {
  const TensorType codes{DType::kU8, {3}, PerTensor(0.5f, 9), Layout::kRowMajor};
  Tensor x(codes);
  for (int i = 0; i < 3; ++i) x.Set(i, i);
  const Tensor y = ops_.Run("pad", {x}, {{"pads", Ints{2, -1}}});
  EXPECT_EQ(y.type().quant, codes.quant);
  EXPECT_THAT(ToDoubles(y), ElementsAre(9, 9, 0, 1));
  EXPECT_THAT(ToDoubles(ops_.Run("pad", {x}, {{"pads", Ints{1, 0}}, {"mode", "edge"}})), ElementsAre(0, 0, 1, 2));
  EXPECT_THAT(ops_.Infer("pad", {codes}, {{"pads", Ints{1, 0}}, {"value", 1.0}}), HasSubstr("wanted 0 for codes"));
}

TEST_F(PadTest, Errors) {
  const auto error = [&](Shape shape, AttributeMap attributes) { return ops_.Infer("pad", {F32(shape)}, attributes); };
  EXPECT_THAT(error({2, 3}, {{"pads", Ints{1, 1}}}), HasSubstr("pads=[1, 1]: wanted 4 values"));
  EXPECT_THAT(error({3}, {{"pads", Ints{3, 0}}, {"mode", "reflect"}}), HasSubstr("at most 2 on axis 0 of size 3"));
  EXPECT_THAT(error({0}, {{"pads", Ints{1, 0}}, {"mode", "edge"}}), HasSubstr("at most 0 on axis 0"));
  EXPECT_THAT(error({3}, {{"pads", Ints{-1, 0}}, {"mode", "edge"}}), HasSubstr("in [0, 2^31)"));
  EXPECT_THAT(error({3}, {{"pads", Ints{-2, -2}}}), HasSubstr("no more cut from axis 0 than its 3"));
  EXPECT_THAT(error({3}, {{"pads", Ints{0, 0}}, {"mode", "mirror"}}), HasSubstr("mode=\"mirror\""));
  EXPECT_THAT(ops_.Infer("pad", {{{DType::kI32, {3}, std::nullopt, Layout::kRowMajor}}},
                         {{"pads", Ints{0, 0}}, {"value", 0.5}}),
              HasSubstr("value=0.5: wanted a whole number"));
}

}  // namespace
}  // namespace fuselage::ops::pad
