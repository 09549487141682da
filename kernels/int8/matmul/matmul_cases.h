// Calls of int8.matmul, for tests on every device.
#ifndef FUSELAGE_KERNELS_INT8_MATMUL_MATMUL_CASES_H_
#define FUSELAGE_KERNELS_INT8_MATMUL_MATMUL_CASES_H_

#include <cmath>
#include <utility>
#include <vector>

#include "kernels/core/testing/testing.h"
#include "kernels/testing/reference.h"

namespace fuselage::int8::matmul {

using kernels::OpCall;

struct Operand {
  DType dtype;
  Shape shape;
  int32_t zero_point;
};

// Results spread like sqrt(K): about a third of the codes saturate.
inline OpCall Call(const Operand& a, const Operand& b, DType result) {
  const double scale = 60 * std::sqrt(static_cast<double>(a.shape.back()) + 1);
  OpCall call{"int8.matmul",
              {SeededTensor(kernels::Codes(a.dtype, a.shape, 0.02f, a.zero_point), 1),
               SeededTensor(kernels::Codes(b.dtype, b.shape, 0.03f, b.zero_point), 2)},
              {{"out_dtype", result}}};
  if (result != DType::kF32) {
    call.attributes.emplace("out_scale", 0.0006 * scale);
    call.attributes.emplace("out_zero_point", result == DType::kU8 ? 120 : -17);
  }
  return call;
}

// Sizes around those of blocks and steps; each with some types and zero points at both ends and between.
inline std::vector<OpCall> Calls() {
  const std::pair<Shape, Shape> shapes[] = {{{1, 1}, {1, 1}},
                                            {{2, 3}, {3, 5}},
                                            {{3, 31}, {31, 7}},
                                            {{4, 32}, {32, 8}},
                                            {{5, 33}, {33, 9}},
                                            {{7, 66}, {66, 65}},
                                            {{65, 12}, {12, 17}},
                                            {{130, 4}, {4, 70}},
                                            {{16, 128}, {128, 64}},
                                            {{300, 192}, {192, 130}},
                                            {{3, 17, 64}, {64, 33}},
                                            {{6, 20}, {3, 20, 16}},
                                            {{2, 1, 9, 5}, {3, 5, 15}},
                                            {{2, 3, 19, 21}, {2, 3, 21, 19}},
                                            {{20}, {20, 18}},
                                            {{2, 4, 20}, {20}},
                                            {{64}, {64}},
                                            {{5, 64, 9}, {5, 9, 1}},
                                            {{3, 77, 20}, {20, 1}},
                                            {{33, 66}, {4, 66, 1}},
                                            {{0, 4}, {4, 5}},
                                            {{3, 0}, {0, 5}},
                                            {{3, 4}, {4, 0}},
                                            {{0, 3, 4}, {4, 2}},
                                            {{2, 70, 63}, {1, 63, 31}}};
  const int zero_points[] = {0, 255, 128, 7};
  const DType results[] = {DType::kU8, DType::kI8, DType::kF32};
  std::vector<OpCall> calls;
  int n = 0;
  for (const auto& [a, b] : shapes) {
    for (const DType a_type : {DType::kU8, DType::kI8}) {
      for (const DType b_type : {DType::kU8, DType::kI8}) {
        const auto zero_point = [](DType dtype, int moved) { return dtype == DType::kI8 ? moved - 128 : moved; };
        calls.push_back(Call({a_type, a, zero_point(a_type, zero_points[n % 4])},
                             {b_type, b, zero_point(b_type, zero_points[n / 4 % 4])}, results[n % 3]));
        ++n;
      }
    }
  }
  return calls;
}

}  // namespace fuselage::int8::matmul

#endif  // FUSELAGE_KERNELS_INT8_MATMUL_MATMUL_CASES_H_
