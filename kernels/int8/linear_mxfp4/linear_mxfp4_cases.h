// Calls of int8.linear_mxfp4, for tests on every device.
#ifndef FUSELAGE_KERNELS_INT8_LINEAR_MXFP4_LINEAR_MXFP4_CASES_H_
#define FUSELAGE_KERNELS_INT8_LINEAR_MXFP4_LINEAR_MXFP4_CASES_H_

#include <optional>
#include <utility>
#include <vector>

#include "kernels/int8/linear_mxfp4/linear_mxfp4.h"
#include "kernels/testing/reference.h"

namespace fuselage::int8::linear_mxfp4 {

using kernels::OpCall;

template <typename T, typename F>
void ForEach(Tensor& tensor, F f) {
  for (int64_t i = 0; i < tensor.num_elements(); ++i) f(tensor.data<T>()[i]);
}

inline Tensor Plain(DType dtype, Shape shape, uint64_t seed) {
  return SeededTensor({dtype, std::move(shape), std::nullopt, Layout::kRowMajor}, seed);
}

inline OpCall Call(Shape input, int64_t channels, const char* activation, bool bias = true) {
  const int64_t depth = input.back();
  Shape rows = input;
  rows.back() = 1;
  Tensor weight = Plain(DType::kU8, {channels, depth}, 1);
  ForEach<uint8_t>(weight, [](uint8_t& code) { code = code % 16; });
  Tensor scale = Plain(DType::kU8, {channels, (depth + kGroup - 1) / kGroup}, 2);
  ForEach<uint8_t>(scale, [](uint8_t& code) { code = static_cast<uint8_t>(115 + code % 9); });
  std::optional<Tensor> biases;
  if (bias) biases = Plain(DType::kF32, {channels}, 3);
  return {"int8.linear_mxfp4",
          {Plain(DType::kI8, input, 4), std::move(weight), std::move(scale), Plain(DType::kF32, std::move(rows), 5),
           std::move(biases)},
          {{"activation", Attribute(activation)}}};
}

inline std::vector<OpCall> Calls() {
  std::vector<OpCall> calls;
  const char* activations[] = {"none", "relu", "silu", "gelu"};
  const int64_t sizes[][3] = {{1, 1, 1},  {1, 10, 32}, {2, 3, 33},   {3, 7, 31},   {4, 8, 64},
                              {5, 9, 65}, {7, 16, 96}, {8, 17, 100}, {9, 33, 256}, {1, 64, 40},
                              {0, 5, 32}, {3, 0, 32},  {70, 70, 70}, {16, 31, 200}};
  int n = 0;
  for (const auto& [rows, channels, depth] : sizes) {
    calls.push_back(Call({rows, depth}, channels, activations[n % 4], n % 3 != 0));
    calls.push_back(Call({rows, depth}, channels, activations[(n + 1) % 4], n % 3 == 0));
    ++n;
  }
  calls.push_back(Call({2, 3, 4, 40}, 5, "silu"));
  calls.push_back(Call({40}, 5, "none"));
  return calls;
}

}  // namespace fuselage::int8::linear_mxfp4

#endif  // FUSELAGE_KERNELS_INT8_LINEAR_MXFP4_LINEAR_MXFP4_CASES_H_
