// Cases for the tests of int8.max_pool2d, on all devices.
#ifndef FUSELAGE_KERNELS_INT8_MAX_POOL2D_MAX_POOL2D_CASES_H_
#define FUSELAGE_KERNELS_INT8_MAX_POOL2D_MAX_POOL2D_CASES_H_

#include <vector>

#include "kernels/core/testing/testing.h"

namespace fuselage::int8::max_pool2d {

using kernels::Codes;
using kernels::KernelDesc;

using Ints = std::vector<int64_t>;

struct Case {
  Shape input, output;
  Ints kernel, stride, padding, dilation;
  bool ceil_mode = false;
};

inline const Case kCases[] = {
    {{1, 64, 12, 12}, {1, 64, 6, 6}, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}},
    {{2, 3, 5, 7}, {2, 3, 2, 3}, {2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1}},
    {{1, 1, 5, 7}, {1, 1, 3, 4}, {2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1}, true},
    {{1, 17, 9, 8}, {1, 17, 5, 10}, {1, 4}, {2, 1}, {0, 3, 0, 2}, {1, 1}},
    {{1, 130, 9, 10}, {1, 130, 5, 4}, {3, 2}, {1, 2}, {0, 0, 0, 1}, {2, 3}},
    {{3, 31, 6, 6}, {3, 31, 1, 1}, {6, 6}, {6, 6}, {0, 0, 0, 0}, {1, 1}},
    {{1, 255, 4, 4}, {1, 255, 6, 6}, {1, 1}, {1, 1}, {1, 1, 1, 1}, {1, 1}},  // The border sees padding alone.
    {{1, 40, 2, 3}, {1, 40, 1, 2}, {2, 2}, {1, 1}, {1, 0, 1, 0}, {3, 1}},    // Taps step over the rows.
    {{1, 48, 7, 7}, {1, 48, 4, 4}, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, true},
    {{1, 24, 6, 600}, {1, 24, 6, 600}, {5, 5}, {1, 1}, {2, 2, 2, 2}, {1, 1}},  // Rows in parts,
    {{1, 5000, 2, 4}, {1, 5000, 1, 2}, {2, 3}, {1, 2}, {0, 1, 0, 0}, {1, 1}},  // pixels too,
    {{1, 2, 2, 8200}, {1, 2, 1, 1}, {2, 8200}, {1, 1}, {0, 0, 0, 0}, {1, 1}},  // and one window that is too long.
    {{1, 4, 3, 5}, {1, 4, 1, 3}, {9, 7}, {1, 2}, {3, 3, 3, 3}, {1, 1}},        // More kernel than input.
    {{2, 48, 9, 7}, {2, 48, 5, 7}, {3, 1}, {2, 1}, {1, 0, 1, 0}, {1, 1}},        // Windows of one column,
    {{1, 9000, 4, 3}, {1, 9000, 2, 3}, {2, 1}, {2, 1}, {0, 0, 0, 0}, {1, 1}},    // in parts,
    {{1, 24, 3, 300}, {1, 24, 1, 300}, {3, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}},    // of a row too,
    {{1, 40, 3, 2}, {1, 40, 2, 2}, {2, 1}, {1, 2}, {0, 1, 0, 1}, {1, 1}},        // and not those at the same places.
    {{0, 8, 4, 4}, {0, 8, 2, 2}, {2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1}},
};

inline KernelDesc Desc(const Case& c, DType dtype, int zero_point = 3) {
  KernelDesc desc;
  desc.op = "int8.max_pool2d";
  desc.inputs = {Codes(dtype, c.input, 0.1f, zero_point, Layout::kNhwc)};
  desc.outputs = {Codes(dtype, c.output, 0.1f, zero_point, Layout::kNhwc)};
  desc.attributes = {{"kernel_size", Attribute(c.kernel)},
                     {"stride", Attribute(c.stride)},
                     {"padding", Attribute(c.padding)},
                     {"dilation", Attribute(c.dilation)},
                     {"ceil_mode", Attribute(c.ceil_mode)}};
  return desc;
}

}  // namespace fuselage::int8::max_pool2d

#endif  // FUSELAGE_KERNELS_INT8_MAX_POOL2D_MAX_POOL2D_CASES_H_
