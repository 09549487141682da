#include "ir/ops/stack_frames/stack_frames.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::stack_frames {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ints = std::vector<int64_t>;

class StackFramesTest : public ::testing::Test {
 protected:
  std::vector<double> Stack(const Tensor& x, AttributeMap attributes) {
    return ToDoubles(ops_.Run("stack_frames", {x}, std::move(attributes)));
  }
  const OpTester ops_{Register};
};

TEST_F(StackFramesTest, FramesOfASequence) {
  const Tensor x = Tensor::Of<float>({3, 1, 1, 2}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(Stack(x, {{"frames", 3}, {"kernel_size", Ints{2}}}), ElementsAre(1, 2, 3, 4, 3, 4, 5, 6));
  EXPECT_THAT(Stack(x, {{"frames", 3}, {"kernel_size", Ints{3}}, {"padding", Ints{1, 1}}, {"stride", Ints{2}}}),
              ElementsAre(0, 0, 1, 2, 3, 4, 3, 4, 5, 6, 0, 0));
  EXPECT_THAT(Stack(x, {{"frames", 3}, {"kernel_size", Ints{2}}, {"dilation", Ints{2}}}), ElementsAre(1, 2, 5, 6));
  EXPECT_THAT(Stack(x, {{"frames", 3}, {"kernel_size", Ints{1}}, {"stride", Ints{2}}}), ElementsAre(1, 2, 5, 6));
}

TEST_F(StackFramesTest, SequencesStayApart) {
  const Tensor x = Tensor::Of<float>({4, 1, 1, 1}, {1, 2, 3, 4});
  EXPECT_THAT(Stack(x, {{"frames", 2}, {"kernel_size", Ints{2}}}), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Stack(x, {{"frames", 2}, {"kernel_size", Ints{2}}, {"padding", Ints{1, 0}}}),
              ElementsAre(0, 1, 1, 2, 0, 3, 3, 4));
}

TEST_F(StackFramesTest, ChannelsOrRows) {
  const Tensor x = Tensor::Of<int32_t>({2, 2, 2, 1}, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_THAT(Stack(x, {{"frames", 2}, {"kernel_size", Ints{2}}}), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(Stack(x, {{"frames", 2}, {"kernel_size", Ints{2}}, {"as_rows", true}}),
              ElementsAre(1, 5, 2, 6, 3, 7, 4, 8));
  EXPECT_THAT(Stack(x, {{"frames", 1}, {"kernel_size", Ints{2}}, {"padding", Ints{0, 1}}, {"as_rows", true}}),
              ElementsAre(1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8, 0));
}

TEST_F(StackFramesTest, CodesKeepTheirParameters) {
  const TensorType codes{DType::kU8, {1, 1, 1, 2}, PerTensor(0.5f, 9), Layout::kRowMajor};
  Tensor x(codes);
  x.Set(0, 3);
  const Tensor y = ops_.Run("stack_frames", {x}, {{"frames", 1}, {"kernel_size", Ints{2}}, {"padding", Ints{1, 0}}});
  EXPECT_EQ(y.type().quant, codes.quant);
  EXPECT_THAT(ToDoubles(y), ElementsAre(9, 9, 3, 0));
}

TEST_F(StackFramesTest, Errors) {
  const auto error = [&](Shape shape, AttributeMap attributes) {
    attributes.emplace("kernel_size", Ints{3});
    return ops_.Infer("stack_frames", {TensorType{DType::kF32, shape, std::nullopt, Layout::kRowMajor}}, attributes);
  };
  EXPECT_THAT(error({4, 2, 1}, {{"frames", 4}}), HasSubstr("rank 3, wanted 4"));
  EXPECT_THAT(error({4, 2, 1, 1}, {{"frames", 3}}), HasSubstr("frames=3: wanted a divisor of the 4 images"));
  EXPECT_THAT(error({4, 2, 1, 1}, {{"frames", 0}}), HasSubstr("frames=0: wanted a divisor"));
  EXPECT_THAT(error({4, 2, 1, 1}, {{"frames", 2}}), HasSubstr("the kernel spans 3 elements"));
  EXPECT_THAT(error({4, 2, 1, 1}, {{"frames", 4}, {"stride", Ints{0}}}), HasSubstr("stride=[0]"));
}

}  // namespace
}  // namespace fuselage::ops::stack_frames
