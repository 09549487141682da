#include "ir/ops/recurrent/recurrent.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::recurrent {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using Strings = std::vector<std::string>;

Tensor F32(Shape shape, std::vector<float> values) { return Tensor::Of<float>(std::move(shape), values); }
TensorType Type(Shape shape, DType dtype = DType::kF32) {
  return {dtype, std::move(shape), std::nullopt, Layout::kRowMajor};
}

class RecurrentTest : public ::testing::Test {
 protected:
  std::vector<Tensor> Run(absl::string_view op, const OpTester::Operands& operands, const AttributeMap& attributes) {
    auto results = ops_.RunAll(op, operands, attributes);
    EXPECT_TRUE(results.ok()) << results.status();
    return results.ok() ? *std::move(results) : std::vector<Tensor>(3);
  }
  const OpTester ops_{Register};
};

// h = x + 10 h: digits of the steps so far.
const OpTester::Operands kDigits = {F32({3, 1, 1}, {1, 2, 3}), F32({1, 1, 1}, {1}), F32({1, 1, 1}, {10})};
const AttributeMap kAffine = {{"activations", Strings{"affine"}}};

TEST_F(RecurrentTest, StepsFollowEachOther) {
  const std::vector<Tensor> forward = Run("rnn", kDigits, kAffine);
  ASSERT_EQ(forward.size(), 2);
  EXPECT_EQ(forward[0].shape(), (Shape{3, 1, 1, 1}));
  EXPECT_THAT(forward[0].values<float>(), ElementsAre(1, 12, 123));
  EXPECT_THAT(forward[1].values<float>(), ElementsAre(123));
  AttributeMap attributes = kAffine;
  attributes.emplace("direction", "reverse");
  EXPECT_THAT(Run("rnn", kDigits, attributes)[0].values<float>(), ElementsAre(321, 32, 3));
}

TEST_F(RecurrentTest, BothDirections) {
  const std::vector<Tensor> results =
      Run("rnn", {F32({3, 1, 1}, {1, 2, 3}), F32({2, 1, 1}, {1, 1}), F32({2, 1, 1}, {10, 10})},
          {{"activations", Strings{"affine", "affine"}},
           {"alpha", std::vector<double>{1, 2}},
           {"direction", "bidirectional"}});
  // Backwards each step is doubled: 6, 2*(2 + 60) = 124, 2*(1 + 1240) = 2482.
  EXPECT_THAT(results[0].values<float>(), ElementsAre(1, 2482, 12, 124, 123, 6));
  EXPECT_THAT(results[1].values<float>(), ElementsAre(123, 2482));
}

// Steps behind a sequence's end leave no trace, in both directions; their y is 0.
TEST_F(RecurrentTest, SequencesOfDifferentLengths) {
  const Tensor x = F32({3, 3, 1}, {1, 4, 7, 2, 5, 8, 3, 6, 9});
  const Tensor lengths = Tensor::Of<int32_t>({3}, {3, 2, 0});
  const Tensor first = F32({1, 3, 1}, {0, 0, 5});
  OpTester::Operands operands = {x, kDigits[1], kDigits[2], std::nullopt, lengths, first};
  std::vector<Tensor> results = Run("rnn", operands, kAffine);
  EXPECT_THAT(results[0].values<float>(), ElementsAre(1, 4, 0, 12, 45, 0, 123, 0, 0));
  EXPECT_THAT(results[1].values<float>(), ElementsAre(123, 45, 5));
  AttributeMap attributes = kAffine;
  attributes.emplace("direction", "reverse");
  results = Run("rnn", operands, attributes);
  EXPECT_THAT(results[0].values<float>(), ElementsAre(321, 54, 0, 32, 5, 0, 3, 0, 0));
  operands[4] = Tensor::Of<int32_t>({3}, {3, 4, 0});
  EXPECT_THAT(ops_.RunAll("rnn", operands, kAffine).status().message(), HasSubstr("found 4, wanted values in [0, 3]"));
}

TEST_F(RecurrentTest, BiasesAndClip) {
  const Tensor bias = F32({1, 2}, {100, 1000});
  EXPECT_THAT(Run("rnn", {kDigits[0], kDigits[1], kDigits[2], bias}, kAffine)[0].values<float>(),
              ElementsAre(1101, 12112, 122223));
  AttributeMap clipped = kAffine;
  clipped.emplace("clip", 50.0);
  EXPECT_THAT(Run("rnn", kDigits, clipped)[0].values<float>(), ElementsAre(1, 12, 50));
}

// One code for each row of both directions.
TEST_F(RecurrentTest, QuantizedWeightsMeanTheirRealValues) {
  const auto codes = [](std::vector<int8_t> values, QuantParams quant) {
    Tensor weight = Tensor::Of<int8_t>({2, 1, 1}, values);
    weight.set_type({DType::kI8, {2, 1, 1}, std::move(quant), Layout::kRowMajor});
    return weight;
  };
  const AttributeMap both = {{"activations", Strings{"affine", "affine"}}, {"direction", "bidirectional"}};
  const auto results = Run("rnn", {kDigits[0], codes({2, 4}, PerAxis(1, {0.5f})), codes({5, 5}, PerTensor(2))}, both);
  EXPECT_THAT(results[1].values<float>(), ElementsAre(123, 642));
}

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// Against the formulas, one unit and one step, with every term in play.
TEST_F(RecurrentTest, Lstm) {
  const Tensor x = F32({1, 1, 1}, {0.5}), h = F32({1, 1, 1}, {0.25}), c = F32({1, 1, 1}, {-0.75});
  const Tensor weight = F32({1, 4, 1}, {0.1f, 0.2f, 0.3f, 0.4f}), recurrent = F32({1, 4, 1}, {0.5, 0.6f, 0.7f, 0.8f});
  const Tensor bias = F32({1, 8}, {0.01f, 0.02f, 0.03f, 0.04f, 0.1f, 0.2f, 0.3f, 0.4f});
  const Tensor peepholes = F32({1, 3}, {1, 2, 3});
  const auto results = Run("lstm", {x, weight, recurrent, bias, std::nullopt, h, c, peepholes}, {});
  const double i = Sigmoid(0.05 + 0.125 + 0.11 - 0.75), f = Sigmoid(0.15 + 0.175 + 0.33 - 2.25);
  const double next = f * -0.75 + i * std::tanh(0.2 + 0.2 + 0.44);
  const double o = Sigmoid(0.1 + 0.15 + 0.22 + 2 * next);
  EXPECT_NEAR(results[2].At(0), next, 1e-6);
  EXPECT_NEAR(results[1].At(0), o * std::tanh(next), 1e-6);
  const auto coupled = Run("lstm", {x, weight, recurrent, bias, std::nullopt, h, c}, {{"input_forget", true}});
  const double input = Sigmoid(0.05 + 0.125 + 0.11);
  EXPECT_NEAR(coupled[2].At(0), (1 - input) * -0.75 + input * std::tanh(0.84), 1e-6);
}

TEST_F(RecurrentTest, Gru) {
  const Tensor x = F32({1, 1, 1}, {0.5}), h = F32({1, 1, 1}, {0.25});
  const Tensor weight = F32({1, 3, 1}, {0.1f, 0.2f, 0.3f}), recurrent = F32({1, 3, 1}, {0.5, 0.6f, 0.7f});
  const Tensor bias = F32({1, 6}, {0.01f, 0.02f, 0.03f, 0.1f, 0.2f, 0.3f});
  const double z = Sigmoid(0.05 + 0.125 + 0.11), r = Sigmoid(0.1 + 0.15 + 0.22);
  for (const bool before : {false, true}) {
    const double state = before ? r * (0.25 * 0.7 + 0.3) : r * 0.25 * 0.7 + 0.3;
    const auto results = Run("gru", {x, weight, recurrent, bias, std::nullopt, h}, {{"linear_before_reset", before}});
    ASSERT_EQ(results.size(), 2);
    EXPECT_NEAR(results[1].At(0), (1 - z) * std::tanh(0.15 + 0.03 + state) + z * 0.25, 1e-6);
  }
}

TEST_F(RecurrentTest, Activations) {
  const std::vector<std::pair<std::string, double>> cases = {{"affine", 2 * -0.5 + 3},
                                                             {"elu", 2 * std::expm1(-0.5)},
                                                             {"hard_sigmoid", 1},
                                                             {"leaky_relu", -1},
                                                             {"relu", 0},
                                                             {"scaled_tanh", 2 * std::tanh(-1.5)},
                                                             {"sigmoid", Sigmoid(-0.5)},
                                                             {"softsign", -0.5 / 1.5},
                                                             {"tanh", std::tanh(-0.5)},
                                                             {"thresholded_relu", 0}};
  for (const auto& [name, wanted] : cases) {
    const AttributeMap attributes = {
        {"activations", Strings{name}}, {"alpha", std::vector<double>{2}}, {"beta", std::vector<double>{3}}};
    EXPECT_NEAR(Run("rnn", {F32({1, 1, 1}, {-0.5}), kDigits[1], kDigits[2]}, attributes)[1].At(0), wanted, 1e-6)
        << name;
  }
}

TEST_F(RecurrentTest, Empty) {
  EXPECT_EQ(Run("rnn", {Tensor(DType::kF32, {0, 2, 1}), kDigits[1], kDigits[2]}, {})[1].shape(), (Shape{1, 2, 1}));
  EXPECT_EQ(Run("lstm",
                {Tensor(DType::kF32, {2, 1, 1}), Tensor(DType::kF32, {1, 0, 1}), Tensor(DType::kF32, {1, 0, 0})}, {})[0]
                .num_elements(),
            0);
}

TEST_F(RecurrentTest, Errors) {
  const OpTester::Types fine = {Type({5, 2, 3}), Type({1, 16, 3}), Type({1, 16, 4})};
  EXPECT_EQ(ops_.Infer("lstm", fine), "(f32[5,1,2,4], f32[1,2,4], f32[1,2,4])");
  EXPECT_THAT(ops_.Infer("gru", fine), HasSubstr("weight f32[1,16,3]: wanted shape [1,12,3]"));
  EXPECT_THAT(ops_.Infer("lstm", fine, {{"direction", "bidirectional"}}), HasSubstr("wanted shape [2,16,3]"));
  EXPECT_THAT(ops_.Infer("lstm", fine, {{"direction", "both"}}), HasSubstr("direction"));
  EXPECT_THAT(ops_.Infer("lstm", fine, {{"clip", -1.0}}), HasSubstr("finite and >= 0"));
  EXPECT_THAT(ops_.Infer("lstm", fine, {{"activations", Strings{"tanh"}}}), HasSubstr("found 1 activations"));
  EXPECT_THAT(
      ops_.Infer("rnn", {Type({5, 2, 3}), Type({1, 4, 3}), Type({1, 4, 4})}, {{"activations", Strings{"sine"}}}),
      HasSubstr("found the activation sine, wanted one of affine, elu"));
  EXPECT_THAT(ops_.Infer("lstm", {fine[0], fine[1], fine[2], std::nullopt, Type({2}, DType::kI64)}),
              HasSubstr("sequence_lens i64[2]"));
  EXPECT_THAT(ops_.Infer("lstm", {Type({5, 3}), fine[1], fine[2]}), HasSubstr("rank 2, wanted 3"));
}

}  // namespace
}  // namespace fuselage::ops::recurrent
