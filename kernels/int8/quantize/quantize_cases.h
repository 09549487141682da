// Cases for the tests of int8.quantize, on all devices.
#ifndef FUSELAGE_KERNELS_INT8_QUANTIZE_QUANTIZE_CASES_H_
#define FUSELAGE_KERNELS_INT8_QUANTIZE_QUANTIZE_CASES_H_

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/core/testing/testing.h"

namespace fuselage::int8::quantize {

using kernels::Codes;
using kernels::Floats;
using kernels::KernelDesc;

inline KernelDesc Desc(TensorType x, TensorType y) {
  KernelDesc desc;
  desc.op = "int8.quantize";
  desc.inputs = {std::move(x)};
  desc.outputs = {std::move(y)};
  return desc;
}

struct Target {
  DType dtype;
  float scale;
  int32_t zero_point;
};
inline const Target kTargets[] = {{DType::kU8, 0.1f, 0},     {DType::kU8, 0.3f, 255},   {DType::kU8, 1.0f, 114},
                                  {DType::kI8, 0.03f, -128}, {DType::kI8, 2e-38f, 127}, {DType::kI8, 3e38f, 5}};

// Ties, their neighbours, both ends of the range, infinities, NaNs of both signs, subnormals, and random values.
inline std::vector<float> Values(float scale) {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  std::vector<float> values = {0.0f, -0.0f, infinity, -infinity, nan, -nan, 1e-45f, -1e-45f, 3.4e38f, -3.4e38f, 1e-38f};
  for (int half = -600; half <= 600; ++half) {
    const float x = 0.5f * static_cast<float>(half) * scale;
    values.push_back(x);
    values.push_back(std::nextafter(x, infinity));
    values.push_back(std::nextafter(x, -infinity));
  }
  const Tensor random = SeededTensor(Floats({3000}), 5);
  for (const float value : random.values<float>()) values.push_back(value * 300 * scale);
  return values;
}

}  // namespace fuselage::int8::quantize

#endif  // FUSELAGE_KERNELS_INT8_QUANTIZE_QUANTIZE_CASES_H_
