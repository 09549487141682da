#include "kernels/int8/linear/linear.h"

#include <algorithm>
#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"
#include "kernels/core/testing/variant_test.h"

namespace fuselage::int8::linear {
namespace {

using kernels::Codes;
using kernels::Floats;
using kernels::Isa;
using kernels::KernelDesc;
using ::testing::HasSubstr;

enum class Output { kU8, kI8, kF32 };

// A layer with seeded operands.
struct Layer {
  KernelDesc desc;
  Tensor weight, bias;

  Layer(Shape input, int64_t channels, DType input_type, int32_t zero_point, Output output, const char* activation) {
    const int64_t depth = input.back();
    Shape result = input;
    result.back() = channels;
    std::vector<float> scales;
    for (int64_t n = 0; n < channels; ++n) scales.push_back(0.001f + 0.0003f * static_cast<float>(n % 7));
    weight = SeededTensor({DType::kI8, {channels, depth}, PerAxis(0, scales), Layout::kRowMajor}, 3);
    bias = SeededTensor(Floats({channels}), 4);
    desc.op = "int8.linear";
    desc.inputs = {Codes(input_type, input, 0.02f, zero_point)};
    // Results spread like sqrt(depth): about a third of the codes saturate.
    const float scale = 0.0015f * std::sqrt(static_cast<float>(depth) + 1);
    desc.outputs = {output == Output::kF32  ? Floats(result)
                    : output == Output::kU8 ? Codes(DType::kU8, result, scale, 120)
                                            : Codes(DType::kI8, result, scale, -17)};
    desc.attributes = {{"activation", Attribute(activation)}};
  }
  // The parameters are borrowed: set when used, so that a Layer may be copied.
  const KernelDesc& Describe() {
    desc.parameters = {{"weight", &weight}, {"bias", &bias}};
    return desc;
  }
};

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
  const bool relu = layer.desc.GetString("activation") == "relu";
  if (ty.dtype == DType::kF32) {
    const float y = std::fma(static_cast<float>(acc), step, bias);
    return relu ? std::max(0.0f, y) : y;
  }
  acc += static_cast<int64_t>(std::nearbyint(double{bias / step}));
  const float v = static_cast<float>(acc) * (step / ty.quant->scale());
  const IntegerRange range = RangeOf(ty.dtype);
  const int32_t zero_point = ty.quant->zero_point();
  const double lo = relu ? std::max<double>(double(range.min), zero_point) : double(range.min);
  return std::min(std::max(std::nearbyint(double{v}) + zero_point, lo), double(range.max));
}

std::vector<Layer> Layers() {
  std::vector<Layer> layers;
  const int64_t sizes[][3] = {{1, 10, 512}, {1, 1, 1},     {2, 3, 5},      {3, 7, 31},     {4, 8, 32},
                              {5, 9, 33},   {1, 33, 64},   {1, 100, 17},   {7, 65, 66},    {65, 17, 12},
                              {130, 70, 4}, {16, 64, 128}, {0, 5, 8},      {3, 0, 4},      {17, 64, 64},
                              {31, 16, 65}, {48, 33, 200}, {64, 100, 512}, {300, 130, 192}};
  int n = 0;
  for (const auto& s : sizes) {
    for (const Output output : {Output::kU8, Output::kI8, Output::kF32}) {
      for (const DType input : {DType::kU8, DType::kI8}) {
        const int zero_points[] = {0, 255, 128, 7};
        const int zero_point = zero_points[n % 4] - (input == DType::kI8 ? 128 : 0);
        layers.push_back(Layer({s[0], s[2]}, s[1], input, zero_point, output, n % 3 == 0 ? "relu" : "none"));
        ++n;
      }
    }
  }
  layers.push_back(Layer({2, 3, 4, 6}, 5, DType::kU8, 3, Output::kU8, "none"));
  layers.push_back(Layer({6}, 5, DType::kU8, 3, Output::kF32, "none"));
  return layers;
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

TEST_P(VariantTest, EqualsScalar) {
  for (Layer& layer : Layers()) {
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

// Sums that 16-bit saturation would spoil: all codes and weights at their ends.
TEST_P(VariantTest, DoesNotSaturate) {
  for (const DType type : {DType::kU8, DType::kI8}) {
    for (const double code : {-128.0, 127.0, 255.0}) {
      for (const double w : {-128.0, 127.0}) {
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

INSTANTIATE_TEST_SUITE_P(All, VariantTest,
                         ::testing::ValuesIn(kernels::WithEmulated(Variants(), avx512_vnni_emulated::Run,
                                                                   amx_emulated::Run)),
                         kernels::VariantName());

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
  const auto message = [](Layer layer) { return std::string(Create(layer.Describe()).status().message()); };
  Layer layer({2, 8}, 4, DType::kU8, 3, Output::kU8, "none");
  layer.desc.outputs[0].shape = {2, 5};
  EXPECT_THAT(message(layer), HasSubstr("wanted shape [2,4]"));
  layer = Layer({2, 8}, 4, DType::kU8, 3, Output::kU8, "gelu");
  EXPECT_THAT(message(layer), HasSubstr("activation 'gelu'"));
  layer = Layer({2, 8}, 4, DType::kU8, 3, Output::kU8, "none");
  layer.desc.inputs[0]->shape = {2, 9};
  EXPECT_THAT(message(layer), HasSubstr("wanted [..., K] and [N, K]"));
  layer = Layer({2, 8}, 4, DType::kU8, 3, Output::kU8, "none");
  layer.bias.Set(2, 1e30);
  EXPECT_EQ(Create(layer.Describe()).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace fuselage::int8::linear
