// Cases for the tests of int8.lookup, on all devices.
#ifndef FUSELAGE_KERNELS_INT8_LOOKUP_LOOKUP_CASES_H_
#define FUSELAGE_KERNELS_INT8_LOOKUP_LOOKUP_CASES_H_

#include <memory>
#include <vector>

#include "kernels/core/testing/testing.h"

namespace fuselage::int8::lookup {

using kernels::KernelDesc;

// From `x_layout` to `y_layout`; `rows` tables of random codes.
inline KernelDesc Desc(const Shape& shape, int64_t rows, Layout x_layout = Layout::kRowMajor,
                       Layout y_layout = Layout::kNhwc, DType dtype = DType::kU8) {
  KernelDesc desc;
  desc.op = "int8.lookup";
  desc.inputs = {TensorType{DType::kU8, shape, std::nullopt, x_layout}};
  desc.outputs = {kernels::Codes(dtype, shape, 0.1f, 7, y_layout)};
  desc.parameters["table"] = {std::make_shared<const Tensor>(
      SeededTensor({dtype, {rows, 256}, std::nullopt, Layout::kRowMajor}, static_cast<uint64_t>(rows)))};
  return desc;
}

// Images in planes and pixels, of one table and of many; what is no image, too.
inline std::vector<KernelDesc> Descs() {
  std::vector<KernelDesc> descs;
  for (const int64_t channels : {1, 2, 3, 4, 5, 17}) {
    for (const int64_t width : {1, 2, 7, 16, 33}) {
      const Shape shape = {2, channels, 3, width};
      for (const int64_t rows : {int64_t{1}, channels}) {
        for (const DType dtype : {DType::kU8, DType::kI8}) {
          descs.push_back(Desc(shape, rows, Layout::kRowMajor, Layout::kNhwc, dtype));
          descs.push_back(Desc(shape, rows, Layout::kNhwc, Layout::kNhwc, dtype));
        }
      }
      descs.push_back(Desc(shape, 1, Layout::kRowMajor, Layout::kRowMajor));
      descs.push_back(Desc(shape, channels, Layout::kRowMajor, Layout::kRowMajor));
    }
    descs.push_back(Desc({5, channels}, channels, Layout::kRowMajor, Layout::kRowMajor));
    descs.push_back(Desc({0, channels, 4, 4}, channels));
  }
  descs.push_back(Desc({7}, 1, Layout::kRowMajor, Layout::kRowMajor));
  return descs;
}

}  // namespace fuselage::int8::lookup

#endif  // FUSELAGE_KERNELS_INT8_LOOKUP_LOOKUP_CASES_H_
