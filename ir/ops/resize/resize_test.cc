#include "ir/ops/resize/resize.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::resize {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using Ints = std::vector<int64_t>;
using Reals = std::vector<double>;

class ResizeTest : public ::testing::Test {
 protected:
  // One axis of the values to `size`.
  std::vector<float> Run(std::vector<float> values, int64_t size, AttributeMap attributes) {
    attributes.emplace("dims", Ints{0});
    attributes.emplace("sizes", Ints{size});
    const Tensor x = Tensor::Of<float>({static_cast<int64_t>(values.size())}, values);
    const Tensor y = ops_.Run("resize", {x}, attributes);
    return {y.data<float>(), y.data<float>() + y.num_elements()};
  }
  std::string Error(AttributeMap attributes) {
    attributes.emplace("dims", Ints{0});
    attributes.emplace("sizes", Ints{4});
    return ops_.Infer("resize", {Iota({2}).type()}, attributes);
  }
  const OpTester ops_{Register};
};

// Against torch 1.13's interpolate with align_corners and without, and nearest, nearest-exact.
TEST_F(ResizeTest, AsTorch) {
  const std::vector<float> x = {1, 5, 2, 8};
  const auto near = [](std::vector<float> wanted) { return Pointwise(FloatNear(2e-6), wanted); };
  EXPECT_THAT(Run(x, 6, {{"mode", "linear"}}), near({1, 3, 4.5f, 2.5f, 5, 8}));
  EXPECT_THAT(Run(x, 6, {{"mode", "linear"}, {"coordinates", "align_corners"}}), near({1, 3.4f, 4.4f, 2.6f, 4.4f, 8}));
  EXPECT_THAT(Run(x, 3, {{"mode", "linear"}}), near({5.0f / 3, 3.5f, 7}));
  EXPECT_THAT(Run(x, 6, {{"mode", "cubic"}}),
              near({0.65277791f, 3.28125f, 4.8124995f, 1.9791665f, 4.718751f, 8.5208321f}));
  EXPECT_THAT(Run(x, 6, {{"coordinates", "asymmetric"}, {"nearest_mode", "floor"}}), ElementsAre(1, 1, 5, 2, 2, 8));
  EXPECT_THAT(Run(x, 6, {{"nearest_mode", "round_prefer_ceil"}}), ElementsAre(1, 5, 5, 2, 8, 8));
}

// ONNX's own node tests of opsets 18 and 19, one axis of each.
TEST_F(ResizeTest, AsOnnx) {
  const std::vector<float> x = {1, 2, 3, 4};
  const auto near = [](std::vector<float> wanted) { return Pointwise(FloatNear(2e-6), wanted); };
  EXPECT_THAT(Run(x, 2, {{"mode", "linear"}, {"antialias", true}, {"scales", Reals{0.6}}}), near({1.375f, 3}));
  EXPECT_THAT(Run(x, 2, {{"mode", "linear"}, {"coordinates", "half_pixel_symmetric"}, {"scales", Reals{0.6}}}),
              near({1.6666667f, 3.3333333f}));
  EXPECT_THAT(Run(x, 2, {{"mode", "linear"}, {"coordinates", "align_corners"}, {"scales", Reals{0.6}}}),
              near({1, 3.142857f}));
  EXPECT_THAT(Run({1, 2}, 5, {{"mode", "linear"}, {"coordinates", "half_pixel_symmetric"}, {"scales", Reals{2.94}}}),
              near({1, 1.15986395f, 1.5f, 1.84013605f, 2}));
  EXPECT_THAT(Run(x, 1, {{"mode", "linear"}, {"coordinates", "pytorch_half_pixel"}}), ElementsAre(1));
}

TEST_F(ResizeTest, Nearest) {
  const std::vector<float> x = {0, 1, 2};
  const auto run = [&](const char* mode) {  // At 0, 0.5, 1, 1.5, 2, 2.5.
    return Run(x, 6, {{"coordinates", "asymmetric"}, {"nearest_mode", mode}});
  };
  EXPECT_THAT(run("floor"), ElementsAre(0, 0, 1, 1, 2, 2));
  EXPECT_THAT(run("ceil"), ElementsAre(0, 1, 1, 2, 2, 2));
  EXPECT_THAT(run("round_prefer_floor"), ElementsAre(0, 0, 1, 1, 2, 2));
  EXPECT_THAT(run("round_prefer_ceil"), ElementsAre(0, 1, 1, 2, 2, 2));
  EXPECT_THAT(Run(x, 6, {{"coordinates", "tf_half_pixel_for_nn"}, {"nearest_mode", "floor"}}),
              ElementsAre(0, 0, 1, 1, 2, 2));
}

// A quarter pixel before the first element, two of the four taps are outside: they repeat the edge, or are left out.
TEST_F(ResizeTest, WeightsAtTheEdge) {
  const auto weight = [](double x) {  // Keys's formula, term by term.
    constexpr double a = -0.75;
    return x <= 1 ? (a + 2) * x * x * x - (a + 3) * x * x + 1 : a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a;
  };
  const std::vector<float> x = {1, 0, 0, 0};
  const double own = weight(0.25), next = weight(1.25), before = weight(0.75), first = weight(1.75);
  EXPECT_FLOAT_EQ(Run(x, 8, {{"mode", "cubic"}})[0], own + before + first);
  EXPECT_FLOAT_EQ(Run(x, 8, {{"mode", "cubic"}, {"exclude_outside", true}})[0], own / (own + next));
  EXPECT_THAT(Run({1, 1, 1, 1}, 7, {{"mode", "cubic"}, {"exclude_outside", true}}),
              Pointwise(FloatNear(1e-6), std::vector<float>(7, 1)));
}

TEST_F(ResizeTest, CropsAndExtrapolates) {
  EXPECT_THAT(Run({0, 1, 2, 3, 4}, 5,
                  {{"mode", "linear"},
                   {"coordinates", "tf_crop_and_resize"},
                   {"roi", Reals{0.5, 1.5}},
                   {"extrapolation_value", 9.0}}),
              ElementsAre(2, 3, 4, 9, 9));
}

TEST_F(ResizeTest, AxesOneAfterTheOther) {
  const Tensor x = Iota({1, 2, 1, 2});
  const Tensor y = ops_.Run("resize", {x}, {{"dims", Ints{1, 3}}, {"sizes", Ints{4, 1}}, {"mode", "linear"}});
  EXPECT_EQ(y.shape(), (Shape{1, 4, 1, 1}));
  EXPECT_THAT(y.values<float>(), ElementsAre(0.5f, 1, 2, 2.5f));
}

TEST_F(ResizeTest, TypesAndErrors) {
  const TensorType codes{DType::kU8, {1, 2}, PerTensor(0.5f), Layout::kRowMajor};
  EXPECT_EQ(ops_.Infer("resize", {codes}, {{"dims", Ints{1}}, {"sizes", Ints{4}}}), "u8[1,4]<scale=0.5>");
  EXPECT_THAT(ops_.Infer("resize", {codes}, {{"dims", Ints{1}}, {"sizes", Ints{4}}, {"mode", "linear"}}),
              HasSubstr("wanted f16, f32 or f64"));
  EXPECT_THAT(
      ops_.Infer("resize", {codes}, {{"dims", Ints{1}}, {"sizes", Ints{4}}, {"coordinates", "tf_crop_and_resize"}}),
      HasSubstr("found quantized codes"));
  const int64_t big = (int64_t{1} << 60) + 1;  // No double.
  EXPECT_THAT(
      ops_.Run("resize", {Tensor::Of<int64_t>({1}, {big})}, {{"dims", Ints{0}}, {"sizes", Ints{2}}}).values<int64_t>(),
      ElementsAre(big, big));
  EXPECT_THAT(Error({{"mode", "area"}}), HasSubstr("one of \"nearest\", \"linear\", \"cubic\""));
  EXPECT_THAT(Error({{"coordinates", "corner"}}), HasSubstr("one of \"half_pixel\""));
  EXPECT_THAT(Error({{"scales", Reals{1e-9}}}), HasSubstr("what makes 4 of 2"));
  EXPECT_THAT(Error({{"scales", Reals{2, 2}}}), HasSubstr("wanted 1 numbers"));
  EXPECT_THAT(Error({{"roi", Reals{0}}}), HasSubstr("wanted 2 numbers"));
  EXPECT_THAT(Error({{"sizes", Ints{-1}}}), HasSubstr("[0, 2^31)"));
  EXPECT_THAT(ops_.Infer("resize", {Iota({0, 2}).type()}, {{"dims", Ints{0}}, {"sizes", Ints{4}}}),
              HasSubstr("axis 0 has 0"));
}

}  // namespace
}  // namespace fuselage::ops::resize
