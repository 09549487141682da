// Calls of int8.linear_groups, for tests on every device.
#ifndef FUSELAGE_KERNELS_INT8_LINEAR_GROUPS_LINEAR_GROUPS_CASES_H_
#define FUSELAGE_KERNELS_INT8_LINEAR_GROUPS_LINEAR_GROUPS_CASES_H_

#include <optional>
#include <utility>
#include <vector>

#include "kernels/int8/linear_groups/linear_groups.h"
#include "kernels/testing/reference.h"

namespace fuselage::int8::linear_groups {

using kernels::OpCall;

template <typename T, typename F>
void ForEach(Tensor& tensor, F f) {
  for (int64_t i = 0; i < tensor.num_elements(); ++i) f(tensor.data<T>()[i]);
}

inline Tensor Plain(DType dtype, Shape shape, uint64_t seed) {
  return SeededTensor({dtype, std::move(shape), std::nullopt, Layout::kRowMajor}, seed);
}

// With MXFP4 weights.
inline OpCall Call(Shape input, int64_t channels, const char* activation, bool bias = true) {
  const int64_t depth = input.back();
  Shape rows = input;
  rows.back() = 1;
  Tensor weight = Plain(DType::kU8, {channels, depth}, 1);
  ForEach<uint8_t>(weight, [](uint8_t& code) { code = code % 16; });
  Tensor scale = Plain(DType::kU8, {channels, (depth + kUnit - 1) / kUnit}, 2);
  ForEach<uint8_t>(scale, [](uint8_t& code) { code = static_cast<uint8_t>(115 + code % 9); });
  std::optional<Tensor> biases;
  if (bias) biases = Plain(DType::kF32, {channels}, 3);
  return {"int8.linear_groups",
          {Plain(DType::kI8, input, 4), std::move(weight), std::move(scale), Plain(DType::kF32, std::move(rows), 5),
           std::move(biases)},
          {{"activation", Attribute(activation)}}};
}

// The same with i8 weights: of four bits; of eight; 5: of four bits, with a zero point for each group.
inline OpCall IntegerCall(Shape input, int64_t channels, int bits, int64_t group, const char* activation = "none",
                          bool bias = true) {
  OpCall call = Call(input, channels, activation, bias);
  const int64_t depth = input.back();
  call.operands[1] = Plain(DType::kI8, {channels, depth}, 6);
  if (bits < 8) ForEach<int8_t>(*call.operands[1], [](int8_t& code) { code = static_cast<int8_t>(code >> 4); });
  if (bits == 5) {
    const Tensor zero_point = Plain(DType::kI8, {channels, (depth + group - 1) / group}, 8);
    int64_t i = 0;
    ForEach<int8_t>(*call.operands[1], [&](int8_t& code) {
      const double zero = zero_point.At(i / depth * zero_point.dim(1) + i % depth / group);
      // Mostly among those of another quantizer, in [-15, 15].
      code = static_cast<int8_t>(code + (zero > 100 ? 120 : zero < -100 ? -120 : static_cast<int>(zero / 15)));
      ++i;
    });
  }
  call.operands[2] = Plain(DType::kF32, {channels, (depth + group - 1) / group}, 7);
  call.attributes.emplace("group_size", Attribute(group));
  return call;
}

inline std::vector<OpCall> Calls() {
  std::vector<OpCall> calls;
  const char* activations[] = {"none", "relu", "silu", "gelu"};
  const int64_t sizes[][3] = {{1, 1, 1},  {1, 10, 32}, {2, 3, 33},   {3, 7, 31},    {4, 8, 64},
                              {5, 9, 65}, {7, 16, 96}, {8, 17, 100}, {9, 33, 256},  {1, 64, 40},
                              {0, 5, 32}, {3, 0, 32},  {70, 70, 70}, {16, 31, 200}, {2, 17, 2100}};
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

inline std::vector<OpCall> IntegerCalls() {
  std::vector<OpCall> calls;
  const int64_t sizes[][3] = {{1, 1, 1},  {1, 10, 32}, {2, 3, 33},   {3, 7, 63},   {4, 8, 64},
                              {5, 9, 65}, {7, 16, 96}, {8, 17, 127}, {9, 33, 256}, {1, 64, 129},
                              {0, 5, 32}, {3, 0, 32},  {70, 70, 70}, {5, 17, 2100}};
  for (const auto& [rows, channels, depth] : sizes) {
    for (const int bits : {4, 5, 8}) {
      for (const int64_t group : {32, 64, 128}) {
        calls.push_back(IntegerCall({rows, depth}, channels, bits, group, bits < 8 ? "relu" : "silu", group != 64));
      }
    }
  }
  return calls;
}

}  // namespace fuselage::int8::linear_groups

#endif  // FUSELAGE_KERNELS_INT8_LINEAR_GROUPS_LINEAR_GROUPS_CASES_H_
