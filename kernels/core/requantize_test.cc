#include "kernels/core/requantize.h"

#include <cstring>
#include <limits>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/core/kernel.h"

namespace fuselage::kernels {
namespace {

using ::testing::HasSubstr;

// Round half to even by integers and doubles alone: exact for |v| < 2^51.
int64_t RoundHalfEven(double v) {
  const double down = std::floor(v);
  const double rest = v - down;
  const int64_t floor = static_cast<int64_t>(down);
  if (rest != 0.5) return rest < 0.5 ? floor : floor + 1;
  return floor % 2 == 0 ? floor : floor + 1;
}

int32_t ExactCode(float v, int32_t zero_point, CodeRange range) {
  const double clamped = std::min(std::max(static_cast<double>(v), -1073741824.0), 1073741824.0);
  const int64_t q = RoundHalfEven(clamped) + zero_point;
  return static_cast<int32_t>(std::min<int64_t>(std::max<int64_t>(q, range.lo), range.hi));
}

float FromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

TEST(ToCode, IsExactOverAllExponents) {
  const struct {
    DType dtype;
    int32_t zero_point;
  } cases[] = {{DType::kU8, 0}, {DType::kU8, 255}, {DType::kU8, 37}, {DType::kI8, -128}, {DType::kI8, 127}};
  for (const auto& c : cases) {
    const CodeRange range = CodeRangeOf(c.dtype, c.zero_point, 1);
    // Every 2,003rd float: a prime, so that mantissas vary from exponent to exponent.
    for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 2003) {
      const float v = FromBits(static_cast<uint32_t>(bits));
      if (std::isnan(v)) continue;
      ASSERT_EQ(ToCode(v, c.zero_point, range), ExactCode(v, c.zero_point, range)) << v;
    }
  }
}

TEST(ToCode, IsExactAroundEveryHalf) {
  const CodeRange wide{-100000, 100000};
  for (int half = -1200; half <= 1200; ++half) {
    const float v = 0.5f * static_cast<float>(half);
    for (const float x : {v, std::nextafter(v, 1e9f), std::nextafter(v, -1e9f)}) {
      ASSERT_EQ(ToCode(x, 5, wide), ExactCode(x, 5, wide)) << x;
    }
  }
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(ToCode(infinity, 3, {0, 255}), 255);
  EXPECT_EQ(ToCode(-infinity, 3, {0, 255}), 0);
}

TEST(QuantizeValue, DividesAndMapsNanToTheZeroPoint) {
  const CodeRange range = CodeRangeOf(DType::kU8, 7, 1);
  EXPECT_EQ(QuantizeValue(std::nanf(""), 0.1f, 7, range), 7);
  EXPECT_EQ(QuantizeValue(std::numeric_limits<float>::infinity(), 0.1f, 7, range), 255);
  // 0.555f / 0.03f is 18.5, a tie, which goes to 18; 0.555f * (1 / 0.03f) is 18.500002.
  EXPECT_EQ(QuantizeValue(0.555f, 0.03f, 0, range), 18);
  EXPECT_EQ(QuantizeValue(0.5f, 1.0f, 0, range), 0);
  EXPECT_EQ(QuantizeValue(1.5f, 1.0f, 0, range), 2);
}

TEST(CodeRangeOf, ReluRaisesTheLowerEnd) {
  EXPECT_EQ(CodeRangeOf(DType::kU8, 10, 0.5f).lo, 0);
  EXPECT_EQ(CodeRangeOf(DType::kU8, 10, 0.5f, Activation::Relu()).lo, 10);
  EXPECT_EQ(CodeRangeOf(DType::kI8, -128, 0.5f, Activation::Relu()).lo, -128);
  EXPECT_EQ(CodeRangeOf(DType::kI8, 4, 0.5f, Activation::Relu()).hi, 127);
}

TEST(CodeRangeOf, AClampsBoundsAreRoundedAsOtherValues) {
  const CodeRange range = CodeRangeOf(DType::kU8, 10, 0.4f, {-1, 6});
  EXPECT_EQ(range.lo, 10 - 2);  // -2.5, to even.
  EXPECT_EQ(range.hi, 10 + 15);
  const CodeRange beyond = CodeRangeOf(DType::kI8, 0, 0.001f, {-1, 6});
  EXPECT_EQ(beyond.lo, -128);
  EXPECT_EQ(beyond.hi, 127);
}

TEST(UnsignedFormOf, KeepsDistances) {
  for (const DType dtype : {DType::kU8, DType::kI8}) {
    const int32_t least = static_cast<int32_t>(RangeOf(dtype).min);
    for (int32_t zero_point = least; zero_point < least + 256; ++zero_point) {
      const UnsignedForm form = UnsignedFormOf({dtype, {1}, PerTensor(1.0f, zero_point), Layout::kRowMajor});
      for (int32_t q = least; q < least + 256; ++q) {
        ASSERT_EQ((static_cast<uint8_t>(q) ^ form.flip) - form.zero_point, q - zero_point);
      }
    }
  }
}

struct Layer {
  TensorType input{DType::kU8, {1, 3}, PerTensor(0.02f, 11), Layout::kRowMajor};
  TensorType output{DType::kU8, {1, 2}, PerTensor(0.07f, 90), Layout::kRowMajor};
  Tensor weight = Tensor::Of<int8_t>({2, 3}, {1, -2, 127, -128, 3, 4});
  Tensor bias = Tensor::Of<float>({2}, {0.33f, -1.7f});

  Layer() { SetWeightQuant(PerAxis(0, {0.011f, 0.3f})); }
  void SetWeightQuant(QuantParams quant) { weight.set_type({DType::kI8, weight.shape(), quant, Layout::kRowMajor}); }
  void SetBias(const std::vector<int32_t>& codes, std::optional<QuantParams> quant) {
    bias = Tensor::Of<int32_t>({static_cast<int64_t>(codes.size())}, codes);
    bias.set_type({DType::kI32, bias.shape(), quant, Layout::kRowMajor});
  }
  absl::StatusOr<Epilogue> Make(const TensorType* residual = nullptr, Activation activation = {}) const {
    EpilogueParams params;
    params.input = &input;
    params.weight = &weight;
    params.bias = &bias;
    params.output = &output;
    params.residual = residual;
    params.activation = activation;
    return MakeEpilogue(params);
  }
};

TEST(MakeEpilogue, FollowsTheFormulas) {
  const Layer layer;
  const TensorType residual{DType::kI8, {1, 2}, PerTensor(0.13f, -5), Layout::kRowMajor};
  const absl::StatusOr<Epilogue> e = layer.Make(&residual, Activation::Relu());
  ASSERT_TRUE(e.ok()) << e.status();
  const int32_t sums[] = {126, -121};
  const float scales[] = {0.011f, 0.3f}, biases[] = {0.33f, -1.7f};
  for (int c = 0; c < 2; ++c) {
    const float step = 0.02f * scales[c];
    EXPECT_EQ(e->bias[c], RoundHalfEven(biases[c] / step) - 11 * sums[c]);
    EXPECT_EQ(e->multiplier[c], step / 0.07f);
  }
  EXPECT_EQ(e->residual_multiplier, 0.13f / 0.07f);
  EXPECT_EQ(e->residual_zero_point, -5);
  EXPECT_EQ(e->zero_point, 90);
  EXPECT_EQ(e->range.lo, 90);
  EXPECT_EQ(e->range.hi, 255);
  EXPECT_TRUE(e->offset.empty());
}

// The integer path against the real numbers that the codes stand for, in double.
TEST(Requantize, IsWithinHalfAStepOfTheRealResult) {
  Layer layer;
  const TensorType residual{DType::kU8, {1, 2}, PerTensor(0.13f, 100), Layout::kRowMajor};
  const absl::StatusOr<Epilogue> plain = layer.Make(), added = layer.Make(&residual);
  ASSERT_TRUE(plain.ok() && added.ok());
  const float weight_scales[] = {0.011f, 0.3f};
  for (int n = 0; n < 20000; ++n) {
    const int32_t x[3] = {n * 7 % 256, n * 31 % 256, n * 101 % 256}, r = n * 13 % 256;
    for (int c = 0; c < 2; ++c) {
      int32_t acc = 0;
      double real = layer.bias.At(c);
      for (int k = 0; k < 3; ++k) {
        const int32_t w = static_cast<int32_t>(layer.weight.At(3 * c + k));
        acc += x[k] * w;
        real += 0.02 * (x[k] - 11) * double{weight_scales[c]} * w;
      }
      const double step = 0.02 * weight_scales[c];  // The bias is rounded to steps.
      const auto expect_near = [&](int32_t code, double value) {
        const double exact = std::min(std::max(value / double{0.07f} + 90, 0.0), 255.0);
        ASSERT_NEAR(code, exact, 0.5 + step / 0.07 + 1e-4);
      };
      expect_near(Requantize(acc, c, *plain), real);
      expect_near(RequantizeWithResidual(acc, c, r, *added), real + double{0.13f} * (r - 100));
    }
  }
}

TEST(MakeEpilogue, FloatOutput) {
  Layer layer;
  layer.output = {DType::kF32, {1, 2}, std::nullopt, Layout::kRowMajor};
  const absl::StatusOr<Epilogue> e = layer.Make();
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_EQ(e->offset, (std::vector<int32_t>{-11 * 126, 11 * 121}));
  EXPECT_TRUE(e->bias.empty());
  EXPECT_EQ(DequantizeAccumulator(1000, 1, *e), std::fma(static_cast<float>(1000 + 11 * 121), 0.02f * 0.3f, -1.7f));
  EXPECT_EQ(layer.Make(&layer.input).status().code(), absl::StatusCode::kUnimplemented);
}

TEST(MakeEpilogue, TakesIntegerBias) {
  Layer layer;
  const float steps[] = {0.02f * 0.011f, 0.02f * 0.3f};
  const int32_t code = 100000001;  // Not a float: shows that codes are used directly.
  const auto b32 = [&](int c) { return layer.Make()->bias[c]; };
  layer.SetBias({code, -7}, std::nullopt);
  EXPECT_EQ(b32(0), code - 11 * 126);
  EXPECT_EQ(b32(1), -7 + 11 * 121);
  layer.SetBias({code, -7}, PerAxis(0, {steps[0], steps[1]}));
  EXPECT_EQ(b32(0), code - 11 * 126);
  EXPECT_EQ(b32(1), -7 + 11 * 121);
  layer.SetBias({1000, -7}, PerAxis(0, {2 * steps[0], 4 * steps[1]}));
  EXPECT_EQ(b32(0), 2000 - 11 * 126);
  EXPECT_EQ(b32(1), -28 + 11 * 121);
  layer.SetWeightQuant(PerTensor(0.3f));
  layer.SetBias({1000, -7}, PerTensor(steps[1]));
  EXPECT_EQ(b32(0), 1000 - 11 * 126);
}

TEST(MakeEpilogue, DeclinesWhatItCannotProve) {
  const auto expect_declined = [](const Layer& layer, const char* what) {
    const absl::Status status = layer.Make().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("channel 1"));
    EXPECT_THAT(std::string(status.message()), HasSubstr(what));
  };
  Layer layer;
  layer.SetBias({0, 2147483647}, std::nullopt);
  expect_declined(layer, "overflow 32 bits");
  layer = Layer();
  layer.bias = Tensor::Of<float>({2}, {0, 1e30f});
  expect_declined(layer, "wanted less than 2^31");
  layer.bias = Tensor::Of<float>({2}, {0, std::nanf("")});
  expect_declined(layer, "nan");
  layer = Layer();
  layer.input.quant = PerTensor(1e-20f, 0);
  layer.bias = Tensor::Of<float>({2}, {0, 0});
  layer.SetWeightQuant(PerAxis(0, {1.0f, 1e-20f}));
  expect_declined(layer, "input scale times weight scale");
  layer.input.quant = PerTensor(0.5f, 0);
  layer.output.quant = PerTensor(1e20f, 0);
  layer.bias = Tensor::Of<float>({2}, {0, 0});
  expect_declined(layer, "multiplier");
}

// One more weight than fits the bound is declined, for either type of codes.
// DEL|w| = 127 * 66,000 fits 128 * sum|w| and misses 255 * sum|w|... by the choice of K on either side of the bound.
TEST(MakeEpilogue, ProofIsTight) {
  for (const DType dtype : {DType::kU8, DType::kI8}) {
    const int64_t largest = dtype == DType::kU8 ? 255 : 128;
    const int64_t fits = ((int64_t{1} << 31) - 1) / (largest * 127);
    for (const int64_t k : {fits, fits + 1}) {
      Layer layer;
      layer.input = {dtype, {1, k}, PerTensor(0.02f, 0), Layout::kRowMajor};
      layer.weight = Tensor::Of<int8_t>({1, k}, std::vector<int8_t>(k, 127));
      layer.SetWeightQuant(PerTensor(0.01f));
      layer.bias = Tensor::Of<float>({1}, {0});
      EXPECT_EQ(layer.Make().ok(), k == fits) << k;
    }
  }
}

// Whoever keeps what kernels pack has the sums too, and may have them from a file.
TEST(MakeEpilogue, TakesSumsThatWereKept) {
  class Kept final : public PackedWeights {
   public:
    std::shared_ptr<const Tensor> Get(const Parameter&, const std::string& layout,
                                      absl::FunctionRef<Tensor()> pack) override {
      EXPECT_EQ(layout, "sums i64[2,3]");
      if (sums == nullptr) sums = std::make_shared<const Tensor>(pack());
      return sums;
    }
    std::shared_ptr<const Tensor> sums;
  } kept;
  const Layer layer;
  KernelDesc desc;
  desc.parameters = {{"weight", &layer.weight}};
  desc.weights = &kept;
  EpilogueParams params;
  params.input = &layer.input;
  params.weight = &layer.weight;
  params.desc = &desc;
  params.output = &layer.output;
  const absl::StatusOr<Epilogue> e = MakeEpilogue(params);
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_EQ(e->weight_sums, kept.sums);
  EXPECT_THAT(kept.sums->values<int64_t>(), ::testing::ElementsAre(126, 130, 127, -121, 135, 128));
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max(), kLeast = std::numeric_limits<int64_t>::min();
  for (const ChannelSums& wrong : {ChannelSums{131, 130, 127},
                                   {-131, 130, 127},
                                   {0, 385, 128},
                                   {0, -1, 0},
                                   {0, 130, 129},
                                   {0, 130, 43},
                                   {0, 60, 64},
                                   {0, 0, -1},
                                   {kMost, kMost, kMost},
                                   {kLeast, kLeast, kLeast},
                                   {kMost, kMost, 128}}) {
    kept.sums = std::make_shared<const Tensor>(
        Tensor::Of<int64_t>({2, 3}, {126, 130, 127, wrong.sum, wrong.magnitude, wrong.largest}));
    EXPECT_THAT(std::string(MakeEpilogue(params).status().message()), HasSubstr("which 3 cannot have"));
  }
}

TEST(MakeEpilogue, SaysHowLargeWeightsAre) {
  Layer layer;
  layer.weight = Tensor::Of<int8_t>({2, 3}, {1, -2, 0, 64, -128, 63});
  layer.SetWeightQuant(PerTensor(0.01f));
  EXPECT_EQ(layer.Make()->largest_weight, 128);
  EXPECT_DOUBLE_EQ(layer.Make()->mean_weight, 258 / 6.0);
}

TEST(MakeEpilogue, RejectsWrongOperands) {
  Layer layer;
  layer.bias = Tensor::Of<float>({3}, {0, 0, 0});
  EXPECT_THAT(std::string(layer.Make().status().message()), HasSubstr("bias is f32[3], wanted [2]"));
  layer = Layer();
  layer.weight = Tensor::Of<int8_t>({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(layer.Make().status().code(), absl::StatusCode::kInvalidArgument);
  QuantParams asymmetric = PerTensor(0.1f, 1);
  layer.SetWeightQuant(asymmetric);
  EXPECT_EQ(layer.Make().status().code(), absl::StatusCode::kUnimplemented);
  layer = Layer();
  layer.input.dtype = DType::kI32;
  EXPECT_EQ(layer.Make().status().code(), absl::StatusCode::kUnimplemented);
}

// An activation that is no clamp is of the real value: multipliers lack the output's scale, which comes last.
TEST(MakeEpilogue, OfAFunction) {
  const TensorType input{DType::kU8, {1, 2}, PerTensor(0.5f, 3), Layout::kRowMajor};
  const TensorType output{DType::kI8, {1, 1}, PerTensor(0.125f, -7), Layout::kRowMajor};
  const TensorType residual{DType::kU8, {1, 1}, PerTensor(0.25f, 1), Layout::kRowMajor};
  Tensor weight = Tensor::Of<int8_t>({1, 2}, {5, -2});
  TensorType weight_type = weight.type();
  weight_type.quant = PerTensor(0.25f);
  weight.set_type(weight_type);
  EpilogueParams params;
  params.input = &input;
  params.weight = &weight;
  params.output = &output;
  params.residual = &residual;
  params.activation = ParseActivation("leaky_relu(negative_slope=0.25)").value();
  const absl::StatusOr<Epilogue> e = MakeEpilogue(params);
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_EQ(e->multiplier[0], 0.125f);
  EXPECT_EQ(e->residual_multiplier, 0.25f);
  EXPECT_EQ(e->function_multiplier, 8);
  EXPECT_EQ(e->range.lo, -128);
  EXPECT_EQ(e->range.hi, 127);
  // (5 * 10 - 2 * 3 - 3 * 3) / 8 = 4.375, and 2 * 0.25 more or 100 * 0.25 less.
  EXPECT_EQ(RequantizeWithResidual(5 * 10 - 2 * 3, 0, 3, *e), -7 + 39);
  EXPECT_EQ(Requantize(5 * 10 - 2 * 3, 0, *e), -7 + 35);
  EXPECT_EQ(Requantize(9 - 16, 0, *e), -7 - 4);  // -2 becomes -0.5.

  const Tensor scale = Tensor::Of<float>({1}, {-0.5f}), shift = Tensor::Of<float>({1}, {1.0f});
  params.post_scale = &scale;
  EXPECT_THAT(std::string(MakeEpilogue(params).status().message()), HasSubstr("post_shift: both of f32 [1] behind"));
  params.post_shift = &shift;
  const absl::StatusOr<Epilogue> post = MakeEpilogue(params);
  ASSERT_TRUE(post.ok()) << post.status();
  EXPECT_EQ(Requantize(9 - 16, 0, *post), -7 + 10);  // -0.5 * -0.5 + 1 in steps of 1/8.
  params.activation = Activation::Relu();
  EXPECT_THAT(std::string(MakeEpilogue(params).status().message()), HasSubstr("without a clamp wanted"));
  params.activation = ParseActivation("leaky_relu(negative_slope=0.25), clamp(min=-1, max=inf)").value();
  EXPECT_THAT(std::string(MakeEpilogue(params).status().message()), HasSubstr("without a clamp wanted"));
  params.activation = params.activation.without_bounds();
  const Tensor wide = Tensor::Of<float>({2}, {1, 1});
  params.post_shift = &wide;
  EXPECT_THAT(std::string(MakeEpilogue(params).status().message()), HasSubstr("post_shift: both of f32 [1] behind"));
  const Tensor infinite = Tensor::Of<float>({1}, {std::numeric_limits<float>::infinity()});
  params.post_shift = &infinite;
  EXPECT_THAT(std::string(MakeEpilogue(params).status().message()), HasSubstr("wanted 0 or a normal float below 2^96"));
  params.post_scale = params.post_shift = nullptr;
  TensorType tiny = output;
  tiny.quant = PerTensor(0x1p-126f);
  params.output = &tiny;
  EXPECT_TRUE(MakeEpilogue(params).ok());
  TensorType huge = residual;
  huge.quant = PerTensor(0x1p97f);
  params.residual = &huge;
  EXPECT_THAT(std::string(MakeEpilogue(params).status().message()), HasSubstr("the residual's scale is"));
  params.residual = nullptr;
  const TensorType floats{DType::kF32, {1, 1}, std::nullopt, Layout::kRowMajor};
  params.output = &floats;
  const absl::StatusOr<Epilogue> f = MakeEpilogue(params);
  ASSERT_TRUE(f.ok()) << f.status();
  EXPECT_EQ(DequantizeAccumulator(9 - 16, 0, *f), -0.5f);
}

}  // namespace
}  // namespace fuselage::kernels
