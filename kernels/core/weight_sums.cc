#include "kernels/core/weight_sums.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>

namespace fuselage::kernels {

TensorType WeightSumsType(const Tensor& weight) {
  return {DType::kI64, {weight.dim(0), 3}, std::nullopt, Layout::kRowMajor};
}

Tensor WeightSums(const Tensor& weight) {
  Tensor sums(WeightSumsType(weight));
  const int64_t channels = weight.dim(0), inner = channels == 0 ? 0 : weight.num_elements() / channels;
  const int8_t* values = weight.data<int8_t>();
  int64_t* to = sums.data<int64_t>();
  for (int64_t c = 0; c < channels; ++c, values += inner, to += 3) {
    int64_t sum = 0, magnitude = 0;
    int largest = 0;
    for (int64_t i = 0; i < inner; ++i) {
      sum += values[i];
      magnitude += std::abs(values[i]);
      largest = std::max(largest, std::abs(values[i]));
    }
    to[0] = sum;
    to[1] = magnitude;
    to[2] = largest;
  }
  return sums;
}

}  // namespace fuselage::kernels
