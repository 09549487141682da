// Cases for the tests of int8.linear, on all devices.
#ifndef FUSELAGE_KERNELS_INT8_LINEAR_LINEAR_CASES_H_
#define FUSELAGE_KERNELS_INT8_LINEAR_LINEAR_CASES_H_

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/core/testing/testing.h"

namespace fuselage::int8::linear {

using kernels::Codes;
using kernels::Floats;
using kernels::KernelDesc;

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

inline std::vector<Layer> Layers() {
  std::vector<Layer> layers;
  const int64_t sizes[][3] = {{1, 10, 512},    {1, 1, 1},    {2, 3, 5},    {3, 7, 31},   {4, 8, 32},    {5, 9, 33},
                              {1, 33, 64},     {1, 100, 17}, {7, 65, 66},  {65, 17, 12}, {130, 70, 4},  {16, 64, 128},
                              {0, 5, 8},       {3, 0, 4},    {17, 64, 64}, {31, 16, 65}, {48, 33, 200}, {64, 100, 512},
                              {300, 130, 192}, {2, 40, 24},  {97, 40, 24},
                              {96, 4, 4},      {90, 3, 3},   {35, 2, 7},   {16, 1, 700}, {49, 1, 129}};
  const char* functions[] = {"hardswish", "hardsigmoid", "leaky_relu(negative_slope=0.1)", "sigmoid", "silu", "tanh",
                             "gelu",      "mish",        "gelu(approximate=tanh)"};
  int n = 0;
  for (const auto& s : sizes) {
    for (const Output output : {Output::kU8, Output::kI8, Output::kF32}) {
      for (const DType input : {DType::kU8, DType::kI8}) {
        const int zero_points[] = {0, 255, 128, 7};
        const int zero_point = zero_points[n % 4] - (input == DType::kI8 ? 128 : 0);
        const char* bounded = output == Output::kF32 ? "none" : "clamp(min=-0.5, max=1.5)";
        const char* activation = n % 3 == 0 ? "relu" : n % 3 == 1 ? bounded : "none";
        layers.push_back(Layer({s[0], s[2]}, s[1], input, zero_point, output, activation));
        layers.push_back(Layer({s[0], s[2]}, s[1], input, zero_point, output, functions[n % 9]));
        ++n;
      }
    }
  }
  layers.push_back(Layer({2, 3, 4, 6}, 5, DType::kU8, 3, Output::kU8, "none"));
  layers.push_back(Layer({6}, 5, DType::kU8, 3, Output::kF32, "none"));
  return layers;
}

}  // namespace fuselage::int8::linear

#endif  // FUSELAGE_KERNELS_INT8_LINEAR_LINEAR_CASES_H_
