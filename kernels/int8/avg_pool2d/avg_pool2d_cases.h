// Cases for the tests of int8.avg_pool2d and int8.global_avg_pool, on all devices.
#ifndef FUSELAGE_KERNELS_INT8_AVG_POOL2D_AVG_POOL2D_CASES_H_
#define FUSELAGE_KERNELS_INT8_AVG_POOL2D_AVG_POOL2D_CASES_H_

#include <vector>

#include "kernels/core/testing/testing.h"

namespace fuselage::int8::avg_pool2d {

using kernels::Codes;
using kernels::KernelDesc;

using Ints = std::vector<int64_t>;

struct Case {
  Shape input, output;
  Ints kernel, stride, padding;
  bool ceil_mode = false;
  bool global = false;
};

inline const Case kCases[] = {
    {{1, 512, 7, 7}, {1, 512, 1, 1}, {7, 7}, {1, 1}, {0, 0, 0, 0}, false, true},
    {{2, 5, 3, 9}, {2, 5, 1, 1}, {3, 9}, {1, 1}, {0, 0, 0, 0}, false, true},
    {{1, 64, 12, 12}, {1, 64, 6, 6}, {3, 3}, {2, 2}, {1, 1, 1, 1}},
    {{2, 3, 5, 7}, {2, 3, 2, 3}, {2, 2}, {2, 2}, {0, 0, 0, 0}},
    {{1, 1, 5, 7}, {1, 1, 3, 4}, {2, 2}, {2, 2}, {0, 0, 0, 0}, true},
    {{1, 17, 9, 8}, {1, 17, 5, 10}, {1, 4}, {2, 1}, {0, 3, 0, 2}},
    {{1, 48, 8, 8}, {1, 48, 5, 5}, {3, 3}, {2, 2}, {1, 1, 1, 1}, true},
    {{1, 33, 2, 2}, {1, 33, 4, 4}, {1, 1}, {1, 1}, {1, 1, 1, 1}},  // The border sees padding alone.
};

inline KernelDesc Desc(const Case& c, DType tx, int zx, DType ty, int zy, bool count_include_pad,
                       float scale_y = 0.05f) {
  KernelDesc desc;
  desc.op = c.global ? "int8.global_avg_pool" : "int8.avg_pool2d";
  desc.inputs = {Codes(tx, c.input, 0.1f, tx == DType::kI8 ? zx - 128 : zx, Layout::kNhwc)};
  desc.outputs = {Codes(ty, c.output, scale_y, ty == DType::kI8 ? zy - 128 : zy, Layout::kNhwc)};
  if (!c.global) {
    desc.attributes = {{"kernel_size", Attribute(c.kernel)},
                       {"stride", Attribute(c.stride)},
                       {"padding", Attribute(c.padding)},
                       {"ceil_mode", Attribute(c.ceil_mode)},
                       {"count_include_pad", Attribute(count_include_pad)}};
  }
  return desc;
}

inline std::vector<KernelDesc> Descs() {
  std::vector<KernelDesc> descs;
  const int zero_points[] = {0, 255, 100};
  int n = 0;
  for (const Case& c : kCases) {
    for (const DType tx : {DType::kU8, DType::kI8}) {
      for (const DType ty : {DType::kU8, DType::kI8}) {
        for (const bool include : {false, true}) {
          descs.push_back(Desc(c, tx, zero_points[n % 3], ty, zero_points[n / 3 % 3], include));
          ++n;
        }
      }
    }
  }
  return descs;
}

}  // namespace fuselage::int8::avg_pool2d

#endif  // FUSELAGE_KERNELS_INT8_AVG_POOL2D_AVG_POOL2D_CASES_H_
