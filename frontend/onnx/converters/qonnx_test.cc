// QONNX's quantizers against what their documentation computes, in float32 as there.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "frontend/onnx/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/text.h"

namespace fuselage::onnx {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kDomain[] = "qonnx.custom_op.general";

struct Quantizer {
  int bits = 8;
  bool is_signed = true, narrow = false;
  std::string mode = "ROUND";
  std::vector<float> scales = {0.5f};  // One, or one for each of three channels.
  float zero_point = 0;
};

float Rounded(float x, const std::string& mode) {
  const float sign = x < 0 ? -1.0f : 1.0f, magnitude = std::abs(x);
  if (mode == "CEIL") return std::ceil(x);
  if (mode == "FLOOR") return std::floor(x);
  if (mode == "UP") return sign * std::ceil(magnitude);
  if (mode == "DOWN") return sign * std::floor(magnitude);
  if (mode == "HALF_UP") return sign * std::floor(magnitude + 0.5f);
  if (mode == "HALF_DOWN") return sign * std::ceil(magnitude - 0.5f);
  return std::nearbyint(x);
}

// Of x: [3, n].
std::vector<float> Wanted(const Quantizer& q, const Tensor& x) {
  const double count = std::exp2(q.bits);
  const float lowest = static_cast<float>(q.is_signed ? -count / 2 + q.narrow : 0);
  const float highest = static_cast<float>(q.is_signed ? count / 2 - 1 : count - 1 - q.narrow);
  std::vector<float> y;
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    const float scale = q.scales[q.scales.size() == 1 ? 0 : i / x.dim(1)];
    const float v = x.data<float>()[i] / scale + q.zero_point;
    const float code =
        q.bits == 1 && q.is_signed ? (v >= 0 ? 1.0f : -1.0f) : Rounded(std::clamp(v, lowest, highest), q.mode);
    y.push_back((code - q.zero_point) * scale);
  }
  return y;
}

// Multiples of a quarter of a step: ties among them, and what saturates. No ties between codes of an odd zero point.
Tensor Values(const Quantizer& q) {
  const double most = std::min(std::exp2(q.bits), 300.0);
  const int n = 8 * static_cast<int>(most) + 9;
  Tensor x(DType::kF32, {3, n});
  for (int i = 0; i < x.num_elements(); ++i) {
    const float scale = q.scales[q.scales.size() == 1 ? 0 : i / n];
    x.data<float>()[i] = (static_cast<float>(i % n - n / 2) * 0.25f + (q.zero_point != 0 ? 0.125f : 0)) * scale;
  }
  return x;
}

// y = Quant(x), where x is an input or a constant.
ModelBuilder QuantOf(const Quantizer& q, const Tensor& x, bool is_constant, const std::string& domain = kDomain) {
  ModelBuilder model;
  if (is_constant) {
    model.Initializer("x", x).Input("unused", {1});
  } else {
    model.Input("x", {x.dim(0), x.dim(1)});
  }
  const int64_t n = static_cast<int64_t>(q.scales.size());
  model.Initializer("scale", F32(n == 1 ? Shape{} : Shape{n, 1}, q.scales));
  model.Initializer("zero_point", Tensor::Scalar(q.zero_point));
  model.Initializer("bits", Tensor::Scalar(static_cast<float>(q.bits)));
  model.Output("y").Node("Quant", {"x", "scale", "zero_point", "bits"}, {"y"}).Domain(domain);
  model.Int("signed", q.is_signed ? 1 : 0).Int("narrow", q.narrow ? 1 : 0).String("rounding_mode", q.mode);
  return model;
}

void ExpectWanted(const Quantizer& q) {
  SCOPED_TRACE(absl::StrCat(q.bits, " bits, signed ", q.is_signed, ", narrow ", q.narrow, ", ", q.mode, ", ",
                            q.scales.size(), " scales, zero point ", q.zero_point));
  const Tensor x = Values(q), wanted = F32(x.shape(), Wanted(q, x));
  ExpectOutput(QuantOf(q, x, false), {x}, wanted);
  ExpectOutput(QuantOf(q, x, true), {F32({1}, {0})}, wanted);
}

TEST(Quant, AllWidths) {
  for (const int bits : {1, 2, 3, 4, 7, 8, 9, 16, 17, 24}) {
    for (const bool is_signed : {false, true}) {
      for (const bool narrow : {false, true}) {
        ExpectWanted({bits, is_signed, narrow});
        ExpectWanted({bits, is_signed, narrow, "ROUND", {0.5f, 0.25f, 2.0f}});
      }
    }
  }
}

TEST(Quant, AllRoundings) {
  for (const char* mode : {"ROUND", "HALF_EVEN", "CEIL", "FLOOR", "UP", "DOWN", "HALF_UP", "HALF_DOWN"}) {
    ExpectWanted({4, true, true, mode});
    ExpectWanted({8, false, false, mode});
    ExpectWanted({20, true, false, mode});
  }
}

TEST(Quant, ZeroPoints) {
  ExpectWanted({8, false, false, "ROUND", {0.5f}, 3});
  ExpectWanted({4, false, false, "ROUND", {0.5f}, 3});
  ExpectWanted({4, false, false, "ROUND", {0.5f, 0.25f, 2.0f}, 5});
  ExpectWanted({4, false, false, "ROUND", {0.5f}, 0.5f});  // No code is zero.
}

// Where a step is no power of two the bound on floats must still be the last code.
TEST(Quant, BoundsOfOddSteps) {
  for (int i = 1; i < 200; ++i) {
    ExpectWanted({4, true, true, "ROUND", {static_cast<float>(i) * 0.00137f}});
  }
}

std::string Text(const ModelBuilder& model) {
  const auto graph = Import(model);
  return graph.ok() ? ir::Print(**graph) : std::string(graph.status().message());
}

// What `lower` looks for.
TEST(Quant, BecomesCodes) {
  const Tensor x = Values({});
  const std::string eight = Text(QuantOf({}, x, false));
  EXPECT_THAT(eight, HasSubstr("quantize("));
  EXPECT_THAT(eight, HasSubstr("dequantize("));
  for (const char* op : {"clamp", "round", "div", "mul"}) EXPECT_THAT(eight, Not(HasSubstr(op)));

  const std::string four = Text(QuantOf({4, false}, x, false));
  EXPECT_THAT(four, HasSubstr("clamp("));
  EXPECT_THAT(four, HasSubstr("max=7.5"));
  EXPECT_THAT(four, Not(HasSubstr("round")));

  // Channels share a scale of 1 between a division and a product.
  const std::string channels = Text(QuantOf({4, false, false, "ROUND", {0.5f, 0.25f, 2.0f}}, x, false));
  EXPECT_THAT(channels, HasSubstr("max=15"));
  EXPECT_THAT(channels, HasSubstr("<scale=1>"));
  EXPECT_THAT(channels, Not(HasSubstr("round(")));

  // A weight is a parameter with codes, by channel.
  const auto weight = Import(QuantOf({4, true, true, "ROUND", {0.5f, 0.25f, 2.0f}}, x, true));
  ASSERT_TRUE(weight.ok()) << weight.status();
  std::vector<const Tensor*> parameters;
  for (const auto& [name, parameter] : (*weight)->parameters()) parameters.push_back(parameter.tensor.get());
  ASSERT_EQ(parameters.size(), 1);
  ASSERT_TRUE(parameters[0]->type().quant.has_value());
  EXPECT_EQ(parameters[0]->dtype(), DType::kI8);
  EXPECT_EQ(parameters[0]->type().quant->axis, 0);
  EXPECT_THAT(parameters[0]->type().quant->scales, ElementsAre(0.5f, 0.25f, 2.0f));
  EXPECT_THAT(ToDoubles(*parameters[0]), Each(testing::AllOf(testing::Ge(-7), testing::Le(7))));
}

TEST(Quant, AllDomains) {
  const Tensor x = Values({});
  for (const char* domain : {"qonnx.custom_op.general", "onnx.brevitas", "finn.custom_op.general"}) {
    ExpectOutput(QuantOf({}, x, false, domain), {x}, F32(x.shape(), Wanted({}, x)));
  }
}

TEST(Quant, Errors) {
  const Tensor x = Values({});
  ExpectError(QuantOf({4, true, true, "NEAREST"}, x, true), "attribute 'rounding_mode': found 'NEAREST', wanted ROUND");
  ExpectError(QuantOf({33}, x, false), "input 3: found a width of 33 bits, wanted a whole number of 1 to 32");
  ExpectError(QuantOf({}, x, false).Int("signed", 2), "signed");
}

TEST(BipolarQuant, Signs) {
  const Tensor x = F32({1, 4}, {-3, -0.0f, 0.25f, 7});
  for (const bool is_constant : {false, true}) {
    ModelBuilder model;
    if (is_constant) {
      model.Initializer("x", x).Input("unused", {1});
    } else {
      model.Input("x", {1, 4});
    }
    model.Initializer("scale", Tensor::Scalar(0.3f)).Output("y");
    model.Node("BipolarQuant", {"x", "scale"}, {"y"}).Domain(kDomain);
    ExpectOutput(model, {is_constant ? F32({1}, {0}) : x}, F32({1, 4}, {-0.3f, 0.3f, 0.3f, 0.3f}));
  }
}

ModelBuilder TruncOf(const std::vector<float>& parameters) {
  ModelBuilder model;
  model.Input("x", {1, 6}).Output("y");
  std::vector<std::string> inputs = {"x"};
  for (const float parameter : parameters) {
    inputs.push_back(absl::StrCat("p", inputs.size()));
    model.Initializer(inputs.back(), Tensor::Scalar(parameter));
  }
  return model.Node("Trunc", inputs, {"y"}).Domain(kDomain);
}

// Codes of 8 bits and step 0.5 lose four: 37 is 2 * 16 and 5, -1 is -1 * 16 and 15.
TEST(Trunc, LosesLowBits) {
  const Tensor x = F32({1, 6}, {18.5f, -0.5f, 8, 7.5f, 63.5f, -64});  // 37, -1, 16, 15, 127, -128
  ExpectOutput(TruncOf({0.5f, 0, 8, 4}), {x}, F32({1, 6}, {1, -0.5f, 0.5f, 0, 3.5f, -4}));
  ExpectOutput(TruncOf({0.5f, 0, 8, 4}).String("rounding_mode", "ROUND"), {x}, F32({1, 6}, {1, 0, 0.5f, 0.5f, 4, -4}));
  ExpectOutput(TruncOf({0.5f, 0, 8, 8, 4}), {x}, F32({1, 6}, {16, -8, 8, 0, 56, -64}));
  ExpectOutput(TruncOf({0.5f, 0, 8, 8, 3}).Int("narrow", 1), {x}, F32({1, 6}, {16, -8, 8, 0, 24, -24}));
  ExpectOutput(TruncOf({0.5f, 0, 8, 8, 4}).Int("signed", 0), {x}, F32({1, 6}, {16, 0, 8, 0, 56, 0}));
  ExpectError(TruncOf({0.5f, 0, 8, -8, 4}), "wanted one that is finite and > 0");
}

}  // namespace
}  // namespace fuselage::onnx
