// Cases for the tests of int8.relu, on all devices.
#ifndef FUSELAGE_KERNELS_INT8_RELU_RELU_CASES_H_
#define FUSELAGE_KERNELS_INT8_RELU_RELU_CASES_H_

#include <utility>
#include <vector>

#include "kernels/core/testing/testing.h"

namespace fuselage::int8::relu {

using kernels::Codes;
using kernels::KernelDesc;

inline KernelDesc Desc(TensorType x, TensorType y) {
  KernelDesc desc;
  desc.op = "int8.relu";
  desc.inputs = {std::move(x)};
  desc.outputs = {std::move(y)};
  return desc;
}

inline std::vector<KernelDesc> Descs() {
  std::vector<KernelDesc> descs;
  for (const DType tx : {DType::kU8, DType::kI8}) {
    for (const DType ty : {DType::kU8, DType::kI8}) {
      for (const int zx : {0, 77, 255}) {
        for (const int zy : {0, 130, 255}) {
          for (const float sy : {0.5f, 0.25f, 1.0f, 0.031f, 1e-12f, 1e20f}) {
            descs.push_back(Desc(Codes(tx, {256}, 0.5f, zx - (tx == DType::kI8 ? 128 : 0)),
                                 Codes(ty, {256}, sy, zy - (ty == DType::kI8 ? 128 : 0))));
          }
        }
      }
    }
  }
  return descs;
}

}  // namespace fuselage::int8::relu

#endif  // FUSELAGE_KERNELS_INT8_RELU_RELU_CASES_H_
