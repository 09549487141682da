#include "ir/ops/int8/recurrent/recurrent.h"

#include <algorithm>
#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/base/elementwise_math.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::int8::recurrent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Strings = std::vector<std::string>;

Tensor Quantized(Tensor codes, QuantParams params) {
  codes.set_type({codes.dtype(), codes.shape(), std::move(params), Layout::kRowMajor});
  return codes;
}
Tensor F32(Shape shape, std::vector<float> values) { return Tensor::Of<float>(std::move(shape), values); }

// The code of a state times its scale.
float Rounded(float h) {
  const float scale = 1.0f / 127;
  return std::clamp(std::nearbyint(h / scale), -128.0f, 127.0f) * scale;
}

class Int8RecurrentTest : public ::testing::Test {
 protected:
  std::vector<Tensor> Run(absl::string_view op, const OpTester::Operands& operands,
                          const AttributeMap& attributes = {}) const {
    auto results = ops_.RunAll(op, operands, attributes);
    EXPECT_TRUE(results.ok()) << results.status();
    return results.ok() ? *std::move(results) : std::vector<Tensor>(3);
  }
  const OpTester ops_{Register};
};

// One unit: each state from the code of the one before. hard_sigmoid(x) is x between 0 and 1 here.
TEST_F(Int8RecurrentTest, StatesAreRoundedBeforeTheirProduct) {
  const Tensor x = Quantized(Tensor::Of<uint8_t>({3, 1, 1}, {12, 11, 8}), PerTensor(0.125f, 10));
  const Tensor w = Quantized(Tensor::Of<int8_t>({1, 1, 1}, {2}), PerTensor(0.5f));
  const Tensor r = Quantized(Tensor::Of<int8_t>({1, 1, 1}, {3}), PerAxis(1, {0.25f}));
  const AttributeMap identity = {
      {"activations", Strings{"hard_sigmoid"}}, {"alpha", std::vector<double>{1}}, {"beta", std::vector<double>{0}}};
  const auto results = Run("int8.rnn", {x, w, r}, identity);
  const float first = 0.25f, second = 0.125f + 0.75f * Rounded(first), third = -0.25f + 0.75f * Rounded(second);
  ASSERT_EQ(results.size(), 2);
  EXPECT_FLOAT_EQ(results[0].At(0), first);
  EXPECT_FLOAT_EQ(results[0].At(1), second);
  EXPECT_NE(Rounded(first), first);
  EXPECT_FLOAT_EQ(results[0].At(2), std::max(third, 0.0f));
  EXPECT_THAT(results[1].values<float>(), ElementsAre(results[0].At(2)));
}

// Gates i, o, f, c of one unit, in one step, with a scale for each and all that may be there.
TEST_F(Int8RecurrentTest, Lstm) {
  const Tensor x = Quantized(Tensor::Of<int8_t>({1, 1, 2}, {4, -6}), PerTensor(0.25f, -2));
  const Tensor w = Quantized(Tensor::Of<int8_t>({1, 4, 2}, {1, 2, 3, 4, -5, 6, 7, -8}),
                             PerAxis(1, {0.125f, 0.0625f, 0.03125f, 0.25f}));
  const Tensor r = Quantized(Tensor::Of<int8_t>({1, 4, 1}, {10, -20, 30, 40}), PerTensor(0.0625f));
  const Tensor bias = F32({1, 8}, {0.01f, 0.02f, 0.03f, 0.04f, 0.1f, 0.2f, 0.3f, 0.4f});
  const Tensor h = F32({1, 1, 1}, {0.3f}), c = F32({1, 1, 1}, {-0.75f}), peepholes = F32({1, 3}, {1, 2, 3});
  const auto results = Run("int8.lstm", {x, w, r, bias, std::nullopt, h, c, peepholes});
  const float xs[2] = {1.5f, -1.0f}, state = Rounded(0.3f);
  const float wi = 0.125f * (1 * xs[0] + 2 * xs[1]) + 0.01f, wo = 0.0625f * (3 * xs[0] + 4 * xs[1]) + 0.02f;
  const float wf = 0.03125f * (-5 * xs[0] + 6 * xs[1]) + 0.03f, wc = 0.25f * (7 * xs[0] - 8 * xs[1]) + 0.04f;
  const float i = elementwise::Sigmoid(wi + 0.625f * state + 0.1f - 0.75f);
  const float f = elementwise::Sigmoid(wf + 1.875f * state + 0.3f - 2.25f);
  const float next = f * -0.75f + i * elementwise::Tanh(wc + 2.5f * state + 0.4f);
  const float o = elementwise::Sigmoid(wo - 1.25f * state + 0.2f + 2 * next);
  ASSERT_EQ(results.size(), 3);
  EXPECT_NEAR(results[2].At(0), next, 1e-6);
  EXPECT_NEAR(results[1].At(0), o * elementwise::Tanh(next), 1e-6);
}

// r*h is rounded where it is multiplied; where the product is reset, h is.
TEST_F(Int8RecurrentTest, Gru) {
  const Tensor x = Quantized(Tensor::Of<uint8_t>({1, 1, 1}, {6}), PerTensor(0.125f, 2));
  const Tensor w = Quantized(Tensor::Of<int8_t>({1, 3, 1}, {1, 2, 3}), PerTensor(0.25f));
  const Tensor r = Quantized(Tensor::Of<int8_t>({1, 3, 1}, {4, 5, 6}), PerTensor(0.25f));
  const Tensor h = F32({1, 1, 1}, {-0.4f});
  const float z = elementwise::Sigmoid(0.125f + Rounded(-0.4f)),
              reset = elementwise::Sigmoid(0.25f + 1.25f * Rounded(-0.4f));
  for (const bool before : {false, true}) {
    const auto results = Run("int8.gru", {x, w, r, std::nullopt, std::nullopt, h}, {{"linear_before_reset", before}});
    const float state = before ? reset * 1.5f * Rounded(-0.4f) : 1.5f * Rounded(reset * -0.4f);
    EXPECT_NEAR(results[1].At(0), (1 - z) * elementwise::Tanh(0.375f + state) + z * -0.4f, 1e-6) << before;
  }
}

// Each direction has its weights; scales are those of the rows of both.
TEST_F(Int8RecurrentTest, BothDirections) {
  const Tensor x = Quantized(Tensor::Of<uint8_t>({2, 1, 1}, {1, 2}), PerTensor(0.25f, 0));
  const Tensor w = Quantized(Tensor::Of<int8_t>({2, 2, 1}, {1, 2, 3, 4}), PerAxis(1, {0.5f, 0.125f}));
  const Tensor r = Quantized(Tensor::Of<int8_t>({2, 2, 2}, std::vector<int8_t>(8, 0)), PerTensor(1));
  const auto results = Run("int8.rnn", {x, w, r}, {{"direction", "bidirectional"}});
  const auto tanh = [](float v) { return elementwise::Tanh(v); };
  EXPECT_THAT(results[0].values<float>(), ElementsAre(tanh(0.125f), tanh(0.0625f), tanh(0.375f), tanh(0.125f),
                                                      tanh(0.25f), tanh(0.125f), tanh(0.75f), tanh(0.25f)));
}

TEST_F(Int8RecurrentTest, AnInitialStateBeyondTheCodesSaturates) {
  const Tensor x = Quantized(Tensor(DType::kU8, {1, 1, 1}), PerTensor(1));
  const Tensor one = Quantized(Tensor::Of<int8_t>({1, 1, 1}, {1}), PerTensor(1));
  const auto state = [&](float h) {
    return Run("int8.rnn", {x, one, one, std::nullopt, std::nullopt, F32({1, 1, 1}, {h})})[1].At(0);
  };
  EXPECT_EQ(state(50), state(1));
  EXPECT_LT(state(0.9f), state(1));
}

TEST_F(Int8RecurrentTest, Errors) {
  const auto codes = [](DType dtype, Shape shape, QuantParams quant) {
    return TensorType{dtype, std::move(shape), std::move(quant), Layout::kRowMajor};
  };
  const OpTester::Types fine = {codes(DType::kU8, {5, 2, 3}, PerTensor(1)),
                                codes(DType::kI8, {1, 8, 3}, PerAxis(1, std::vector<float>(8, 1))),
                                codes(DType::kI8, {1, 8, 2}, PerTensor(1))};
  EXPECT_EQ(ops_.Infer("int8.lstm", fine), "(f32[5,1,2,2], f32[1,2,2], f32[1,2,2])");
  const auto with = [&](int i, TensorType type) {
    OpTester::Types types = fine;
    types[i] = std::move(type);
    return ops_.Infer("int8.lstm", types);
  };
  EXPECT_THAT(with(0, {DType::kF32, {5, 2, 3}, std::nullopt, Layout::kRowMajor}), HasSubstr("wanted u8 or i8 codes"));
  EXPECT_THAT(with(1, codes(DType::kI8, {1, 8, 3}, PerAxis(0, {1}))), HasSubstr("one for each index of axis 1"));
  EXPECT_THAT(with(2, codes(DType::kU8, {1, 8, 2}, PerTensor(1))), HasSubstr("recurrent_weight u8[1,8,2]"));
  EXPECT_THAT(with(2, codes(DType::kI8, {1, 8, 3}, PerTensor(1))), HasSubstr("wanted shape [1,12,3]"));
  const auto activations = [&](absl::string_view op, int64_t rows, Strings names) {
    return ops_.Infer(
        op, {fine[0], codes(DType::kI8, {1, rows, 3}, PerTensor(1)), codes(DType::kI8, {1, rows, 2}, PerTensor(1))},
        {{"activations", std::move(names)}});
  };
  EXPECT_THAT(activations("int8.rnn", 2, {"relu"}), HasSubstr("relu of a rnn lets states leave [-1, 1]"));
  EXPECT_THAT(activations("int8.gru", 6, {"tanh", "tanh"}), HasSubstr("tanh of a gru"));
  EXPECT_EQ(activations("int8.gru", 6, {"hard_sigmoid", "softsign"}), "(f32[5,1,2,2], f32[1,2,2])");
}

}  // namespace
}  // namespace fuselage::ops::int8::recurrent
