// Cases for the tests of int8.add, on all devices.
#ifndef FUSELAGE_KERNELS_INT8_ADD_ADD_CASES_H_
#define FUSELAGE_KERNELS_INT8_ADD_ADD_CASES_H_

#include <utility>
#include <vector>

#include "kernels/core/testing/testing.h"
#include "kernels/testing/reference.h"

namespace fuselage::int8::add {

using kernels::Codes;
using kernels::KernelDesc;

inline KernelDesc Desc(TensorType a, TensorType b, TensorType y, const char* activation = "none") {
  KernelDesc desc;
  desc.op = "int8.add";
  desc.inputs = {std::move(a), std::move(b)};
  desc.outputs = {std::move(y)};
  desc.attributes = {{"alpha", Attribute(1.0)}, {"activation", Attribute(activation)}};
  return desc;
}

// All pairs of types, zero points at both ends and between, scales that saturate, tie, and hardly matter.
inline std::vector<KernelDesc> Descs() {
  const Shape shape = {256, 256};
  std::vector<KernelDesc> descs;
  const DType types[] = {DType::kU8, DType::kI8};
  const float scales[][3] = {{0.5f, 0.25f, 0.5f},
                             {0.031f, 0.047f, 0.059f},
                             {1.0f, 1e-6f, 0.001f},
                             {1e-7f, 2e-7f, 3e20f},
                             {3e38f, 3e38f, 1.0f}};
  int n = 0;
  for (const DType a : types) {
    for (const DType b : types) {
      for (const DType y : types) {
        for (const auto& s : scales) {
          const auto zero_point = [&n](DType dtype, int step) {
            const int points[] = {0, 255, 128, 3};
            return points[(n + step) % 4] - (dtype == DType::kI8 ? 128 : 0);
          };
          descs.push_back(Desc(Codes(a, shape, s[0], zero_point(a, 0)), Codes(b, shape, s[1], zero_point(b, n / 4)),
                               Codes(y, shape, s[2], zero_point(y, n / 2)), n % 3 == 0 ? "relu" : "none"));
          ++n;
        }
      }
    }
  }
  return descs;
}

// A smaller operand, on either side, that repeats whole: by whole vectors, from one to the middle of another, and more
// than once in one.
inline std::vector<KernelDesc> RepeatingDescs() {
  std::vector<KernelDesc> descs;
  const auto add = [&](const Shape& whole, const Shape& small) {
    const TensorType x = Codes(DType::kU8, whole, 0.02f, 3), other = Codes(DType::kI8, small, 0.03f, -5);
    const TensorType y = Codes(DType::kU8, whole, 0.04f, 7);
    descs.push_back(Desc(x, other, y));
    descs.push_back(Desc(other, x, y));
  };
  for (const Shape& small : {Shape{1, 3, 70}, Shape{3, 70}, Shape{1, 1, 70}, Shape{70}}) add({4, 3, 70}, small);
  add({4, 50, 128}, {1, 50, 128});
  add({7, 3}, {3});
  add({5, 11}, {1});
  return descs;
}

// Every way for two operands to be smaller than the result: in one block and in many, rows that are and that are not
// whole vectors.
inline std::vector<kernels::OpCall> BroadcastingCalls() {
  std::vector<kernels::OpCall> calls;
  for (const auto& [h, w] : {std::pair<int64_t, int64_t>{4, 5}, {40, 50}, {16, 64}}) {
    const Shape smaller[] = {{},        {1},          {w},          {h, 1},       {3, 1, 1},    {1, 3, 1, w},
                             {3, h, w}, {1, 3, 1, 1}, {2, 1, h, 1}, {1, 1, 1, w}, {2, 3, 1, 1}, {2, 3, h, w}};
    for (const Shape& first : smaller) {
      for (const Shape& second : smaller) {
        const DType dtype = calls.size() % 2 == 0 ? DType::kU8 : DType::kI8;
        calls.push_back({"int8.add",
                         {SeededTensor(Codes(DType::kU8, first, 0.02f, 3), 1),
                          SeededTensor(Codes(DType::kI8, second, 0.03f, -5), 2)},
                         {{"out_dtype", dtype}, {"out_scale", 0.04}, {"out_zero_point", 7}}});
      }
    }
  }
  return calls;
}

}  // namespace fuselage::int8::add

#endif  // FUSELAGE_KERNELS_INT8_ADD_ADD_CASES_H_
