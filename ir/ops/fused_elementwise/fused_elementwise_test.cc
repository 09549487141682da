#include "ir/ops/fused_elementwise/fused_elementwise.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/binary/binary.h"
#include "ir/ops/core/testing.h"
#include "ir/ops/unary/unary.h"

namespace fuselage::ops::fused_elementwise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

void RegisterAll(ir::OpRegistry& registry) {
  binary::Register(registry);
  unary::Register(registry);
  Register(registry);
}

AttributeMap Steps(std::vector<std::string> steps) { return {{"steps", Attribute(std::move(steps))}}; }
TensorType F32(Shape shape) { return {DType::kF32, std::move(shape), std::nullopt, Layout::kRowMajor}; }

class FusedElementwiseTest : public ::testing::Test {
 protected:
  const OpTester ops_{RegisterAll};
};

TEST_F(FusedElementwiseTest, RunsTheSteps) {
  const Tensor x = Tensor::Of<float>({3}, {-4, 1, 2}), y = Tensor::Of<float>({3}, {1, 1, 10});
  EXPECT_THAT(
      ops_.Run("fused_elementwise", {x, y}, Steps({"add(0, 1, alpha=2.0)", "relu(2)", "mul(3, 2)"})).values<float>(),
      ElementsAre(0, 9, 484));
}

TEST_F(FusedElementwiseTest, HasTheBitsOfTheStepsAlone) {
  const Tensor x = SeededTensor(F32({50}), 1), y = SeededTensor(F32({4, 1}), 2);
  const Tensor sum = ops_.Run("add", {x, y});
  const Tensor wanted = ops_.Run("mul", {sum, ops_.Run("sigmoid", {sum})});
  EXPECT_TRUE(ops_.Run("fused_elementwise", {x, y}, Steps({"add(0, 1)", "sigmoid(2)", "mul(2, 3)"})).SameBytes(wanted));
}

TEST_F(FusedElementwiseTest, Broadcasts) {
  EXPECT_EQ(ops_.Infer("fused_elementwise", {F32({2, 1}), F32({3}), F32({})}, Steps({"mul(0, 1)", "add(3, 2)"})),
            "f32[2,3]");
}

TEST_F(FusedElementwiseTest, Errors) {
  EXPECT_THAT(ops_.Infer("fused_elementwise", {F32({2})}, Steps({"softmax(0)"})),
              HasSubstr("'softmax' is no elementwise"));
  EXPECT_THAT(ops_.Infer("fused_elementwise", {F32({2}), F32({2})}, Steps({"relu(0)"})),
              HasSubstr("steps that read value 1"));
  EXPECT_THAT(ops_.Infer("fused_elementwise", {F32({2})}, Steps({"relu(0)", "tanh(0)"})),
              HasSubstr("steps that read value 1"));
  EXPECT_THAT(ops_.Infer("fused_elementwise", {F32({2}), F32({3})}, Steps({"add(0, 1)"})),
              HasSubstr("step \"add(0, 1)\""));
  EXPECT_THAT(
      ops_.Infer("fused_elementwise", {{{DType::kI32, {2}, std::nullopt, Layout::kRowMajor}}}, Steps({"relu(0)"})),
      HasSubstr("wanted element type f32"));
}

}  // namespace
}  // namespace fuselage::ops::fused_elementwise
