// Cases for the tests of int8.dequantize, on all devices.
#ifndef FUSELAGE_KERNELS_INT8_DEQUANTIZE_DEQUANTIZE_CASES_H_
#define FUSELAGE_KERNELS_INT8_DEQUANTIZE_DEQUANTIZE_CASES_H_

#include <utility>

#include "kernels/core/testing/testing.h"

namespace fuselage::int8::dequantize {

using kernels::Codes;
using kernels::Floats;
using kernels::KernelDesc;

inline KernelDesc Desc(TensorType x, TensorType y) {
  KernelDesc desc;
  desc.op = "int8.dequantize";
  desc.inputs = {std::move(x)};
  desc.outputs = {std::move(y)};
  return desc;
}

}  // namespace fuselage::int8::dequantize

#endif  // FUSELAGE_KERNELS_INT8_DEQUANTIZE_DEQUANTIZE_CASES_H_
