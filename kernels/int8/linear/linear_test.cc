#include "kernels/int8/linear/linear.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <tuple>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"
#include "kernels/core/testing/variant_test.h"
#include "kernels/int8/linear/linear_cases.h"

namespace fuselage::int8::linear {
namespace {

using kernels::Isa;
using ::testing::HasSubstr;

// arithmetic.md in int64 and double, rounded to float where it says float.
double Wanted(Layer& layer, const Tensor& x, int64_t row, int64_t n) {
  const TensorType &tx = layer.desc.input(0), &ty = layer.desc.output();
  const int64_t depth = layer.weight.dim(1);
  int64_t acc = 0;
  for (int64_t k = 0; k < depth; ++k) {
    acc += static_cast<int64_t>(x.At(row * depth + k) - tx.quant->zero_point()) *
           static_cast<int64_t>(layer.weight.At(n * depth + k));
  }
  const float step = tx.quant->scale() * layer.weight.type().quant->scales[n];
  const float bias = layer.bias.data<float>()[n];
  const Activation activation = ParseActivation(layer.desc.GetString("activation")).value();
  if (ty.dtype == DType::kF32) return activation(std::fma(static_cast<float>(acc), step, bias));
  acc += static_cast<int64_t>(std::nearbyint(double{bias / step}));
  const float scale = ty.quant->scale();
  float v = static_cast<float>(acc) * (step / scale);
  if (activation.function) {
    v = elementwise::Activated(elementwise::ForCodes(*activation.function), static_cast<float>(acc) * step) *
        (1 / scale);
  }
  const IntegerRange range = RangeOf(ty.dtype);
  const int32_t zero_point = ty.quant->zero_point();
  const auto code = [&](float steps, double lo, double hi) {
    return std::min(std::max(std::nearbyint(double{steps}) + zero_point, lo), hi);
  };
  const auto bound = [&](float value) {
    return code(value / ty.quant->scale(), static_cast<double>(range.min), static_cast<double>(range.max));
  };
  return code(v, bound(activation.min), bound(activation.max));
}

TEST(Scalar, FollowsTheFormulas) {
  for (Layer& layer : Layers()) {
    const auto kernel = Create(layer.Describe());
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    EXPECT_EQ((*kernel)->variant(), "scalar");
    const Tensor x = SeededTensor(layer.desc.input(0), 5);
    const absl::StatusOr<Tensor> y = kernels::RunKernel(**kernel, {&x});
    ASSERT_TRUE(y.ok()) << y.status();
    const int64_t channels = layer.weight.dim(0);
    for (int64_t i = 0; i < y->num_elements(); ++i) {
      ASSERT_EQ(y->At(i), Wanted(layer, x, i / channels, i % channels))
          << ToString(layer.desc.input(0)) << " " << ToString(layer.desc.output()) << " " << i;
    }
  }
}

using VariantTest = kernels::VariantTest<Variant>;

// The largest weight that a variant takes.
int MaxWeight(const Variant& variant) {
  Params large;
  large.rows = 1 << 20;
  return variant.accepts == nullptr || variant.accepts(large) ? 128 : 64;
}

// Where it is limited, some weights are smaller: groups of every size.
void LimitWeight(const Variant& variant, Tensor* weight) {
  int8_t* w = weight->data<int8_t>();
  const int max = MaxWeight(variant);
  for (int64_t i = 0; i < weight->num_elements(); ++i) {
    w[i] = static_cast<int8_t>(std::clamp<int>(w[i], -max, max) / (max == 128 ? 1 : 1 << i / 4 % 4));
  }
}

TEST_P(VariantTest, EqualsScalar) {
  for (Layer& layer : Layers()) {
    LimitWeight(GetParam(), &layer.weight);
    const auto scalar = CreateVariant(layer.Describe(), Variants()[0]);
    const auto kernel = CreateVariant(layer.Describe(), GetParam());
    ASSERT_TRUE(scalar.ok() && kernel.ok());
    const Tensor x = SeededTensor(layer.desc.input(0), 5);
    const absl::StatusOr<Tensor> wanted = kernels::RunKernel(**scalar, {&x});
    for (const int threads : {1, 3}) {
      kernels::TestThreads parallel(threads);
      const absl::StatusOr<Tensor> found = kernels::RunKernel(**kernel, {&x}, &parallel);
      ASSERT_TRUE(wanted.ok() && found.ok()) << found.status();
      ASSERT_TRUE(found->SameBytes(*wanted)) << ToString(layer.desc.input(0)) << " " << ToString(layer.desc.output());
    }
  }
}

// Each row has a scale of its own.
TEST_P(VariantTest, ScalesOfRows) {
  for (const char* activation : {"none", "relu", "silu"}) {
    for (const auto& [rows, channels, depth] :
         {std::tuple(1, 33, 64), std::tuple(5, 9, 33), std::tuple(65, 17, 12), std::tuple(48, 70, 200)}) {
      Layer layer({rows, depth}, channels, DType::kI8, 0, Output::kF32, activation);
      LimitWeight(GetParam(), &layer.weight);
      layer.desc.inputs[0]->quant.reset();
      layer.desc.inputs.push_back(Floats({rows, 1}));
      const auto kernel = CreateVariant(layer.Describe(), GetParam());
      ASSERT_TRUE(kernel.ok()) << kernel.status();
      const Tensor x = SeededTensor(layer.desc.input(0), 5), scale = SeededTensor(layer.desc.input(1), 6);
      kernels::TestThreads parallel(3);
      const absl::StatusOr<Tensor> y = kernels::RunKernel(**kernel, {&x, &scale}, &parallel);
      ASSERT_TRUE(y.ok()) << y.status();
      const Activation function = ParseActivation(activation).value();
      for (int64_t i = 0; i < y->num_elements(); ++i) {
        const int64_t row = i / channels, n = i % channels;
        double sum = 0;
        for (int64_t k = 0; k < depth; ++k) sum += x.At(row * depth + k) * layer.weight.At(n * depth + k);
        const float step = layer.weight.type().quant->scales[n] * scale.data<float>()[row];
        const float v = std::fma(static_cast<float>(sum), step, layer.bias.data<float>()[n]);
        ASSERT_EQ(y->At(i), function(v)) << rows << "x" << channels << "x" << depth << " " << i;
      }
    }
  }
}

// Sums that 16-bit saturation would spoil: all codes and weights at their ends.
TEST_P(VariantTest, DoesNotSaturate) {
  for (const DType type : {DType::kU8, DType::kI8}) {
    for (const double code : {-128.0, 127.0, 255.0}) {
      const int max = MaxWeight(GetParam());
      for (const int w : {-max, std::min(max, 127)}) {
        Layer layer({1, 64}, 16, type, 0, Output::kF32, "none");
        Tensor x(layer.desc.input(0));
        for (int64_t i = 0; i < 64; ++i) x.Set(i, code);
        for (int64_t i = 0; i < 64 * 16; ++i) layer.weight.Set(i, w);
        const auto kernel = CreateVariant(layer.Describe(), GetParam());
        ASSERT_TRUE(kernel.ok()) << kernel.status();
        const absl::StatusOr<Tensor> y = kernels::RunKernel(**kernel, {&x});
        ASSERT_TRUE(y.ok()) << y.status();
        for (int64_t n = 0; n < 16; ++n) ASSERT_EQ(y->At(n), Wanted(layer, x, 0, n));
      }
    }
  }
}

// A file may hold any bytes as packed weights: they give other results, and nothing else is read.
TEST_P(VariantTest, TakesAnyPackedWeights) {
  class Forged final : public kernels::PackedWeights {
   public:
    explicit Forged(uint8_t byte) : byte_(byte) {}
    std::shared_ptr<const Tensor> Get(const kernels::Parameter&, const std::string& layout,
                                      absl::FunctionRef<Tensor()> pack) override {
      auto packed = std::make_shared<Tensor>(pack());
      if (absl::StartsWith(layout, "linear ")) std::memset(packed->raw_data(), byte_, packed->byte_size());
      return packed;
    }

   private:
    const uint8_t byte_;
  };
  for (const int byte : {0x01, 0x7F, 0x80, 0xFF}) {
    Forged forged(static_cast<uint8_t>(byte));
    Layer layer({9, 2100}, 20, DType::kU8, 3, Output::kU8, "none");
    LimitWeight(GetParam(), &layer.weight);
    layer.Describe();
    layer.desc.weights = &forged;
    const auto kernel = CreateVariant(layer.desc, GetParam());
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    const Tensor x = SeededTensor(layer.desc.input(0), 5);
    EXPECT_TRUE(kernels::RunKernel(**kernel, {&x}).ok());
  }
}

INSTANTIATE_TEST_SUITE_P(All, VariantTest,
                         ::testing::ValuesIn(kernels::WithEmulated<Variant, Function>(
                             Variants(),
                             {{"emulated avx_vnni", kernels::Isa::kAvxVnni, avx_vnni_emulated::Run},
                              {"emulated avx512_vnni", kernels::Isa::kAvx512Vnni, avx512_vnni_emulated::Run},
                              {"emulated amx", kernels::Isa::kAmx, amx_emulated::Run}})),
                         kernels::VariantName());

TEST(Create, PairsOfNarrowWeights) {
  for (const int64_t rows : {2, 4}) {
    Layer layer({rows, 8}, 4, DType::kU8, 3, Output::kU8, "none");
    layer.desc.isa = Isa::kAvx2;
    for (int64_t i = 0; i < layer.weight.num_elements(); ++i) layer.weight.Set(i, i % 2 == 0 ? 64 : -64);
    const absl::StatusOr<std::string> narrow = VariantName(layer.Describe());
    layer.weight.Set(31, 65);
    const absl::StatusOr<std::string> wide = VariantName(layer.Describe());
    for (int64_t i = 0; i < layer.weight.num_elements(); i += 2)
      layer.weight.Set(i, 0);  // With three more their mean is 26.
    layer.weight.Set(1, 0);
    layer.weight.Set(3, 0);
    layer.weight.Set(5, 0);
    const absl::StatusOr<std::string> mostly_narrow = VariantName(layer.Describe());
    ASSERT_TRUE(narrow.ok() && wide.ok() && mostly_narrow.ok());
    const char* const pairs = rows < 4 ? "avx2 pairs, few rows" : "avx2 pairs";
    EXPECT_EQ(*narrow, *wide == "avx2" ? pairs : *wide);
    EXPECT_EQ(*mostly_narrow, *wide == "avx2" && rows >= 4 ? pairs : *wide);
  }
}

TEST(Create, TakesNoBias) {
  Layer layer({2, 8}, 4, DType::kU8, 3, Output::kU8, "none");
  layer.bias = Tensor::Of<float>({4}, {0, 0, 0, 0});
  const Tensor x = SeededTensor(layer.desc.input(0), 5);
  const absl::StatusOr<Tensor> wanted = kernels::RunKernel(**Create(layer.Describe()), {&x});
  layer.desc.parameters.erase("bias");
  const absl::StatusOr<Tensor> found = kernels::RunKernel(**Create(layer.desc), {&x});
  ASSERT_TRUE(wanted.ok() && found.ok());
  EXPECT_TRUE(found->SameBytes(*wanted));
}

TEST(Create, Declines) {
  const auto message = [](Layer layer) {
    const absl::Status status = Create(layer.Describe()).status();
    EXPECT_EQ(VariantName(layer.Describe()).status(), status);
    return std::string(status.message());
  };
  Layer layer({2, 8}, 4, DType::kU8, 3, Output::kU8, "none");
  EXPECT_EQ(VariantName(layer.Describe()).value(), (*Create(layer.Describe()))->variant());
  layer.desc.outputs[0].shape = {2, 5};
  EXPECT_THAT(message(layer), HasSubstr("wanted shape [2,4]"));
  layer = Layer({2, 8}, 4, DType::kI8, 3, Output::kF32, "none");
  layer.desc.inputs.push_back(Floats({2, 1}));
  EXPECT_THAT(message(layer), HasSubstr("wanted plain i8, f32[2,1] and f32"));
  layer = Layer({2, 8}, 4, DType::kU8, 3, Output::kU8, "elu");
  EXPECT_THAT(message(layer), HasSubstr("activation=\"elu\": wanted one of"));
  layer = Layer({2, 8}, 4, DType::kU8, 3, Output::kU8, "none");
  layer.desc.inputs[0]->shape = {2, 9};
  EXPECT_THAT(message(layer), HasSubstr("wanted [..., K] and [N, K]"));
  layer = Layer({2, 8}, 4, DType::kU8, 3, Output::kU8, "none");
  layer.bias.Set(2, 1e30);
  EXPECT_EQ(Create(layer.Describe()).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace fuselage::int8::linear
