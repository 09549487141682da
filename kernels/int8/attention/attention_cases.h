// Calls of attention, for tests on every device.
#ifndef FUSELAGE_KERNELS_INT8_ATTENTION_ATTENTION_CASES_H_
#define FUSELAGE_KERNELS_INT8_ATTENTION_ATTENTION_CASES_H_

#include <cmath>
#include <optional>
#include <vector>

#include "ir/base/tensor.h"
#include "kernels/core/testing/testing.h"
#include "kernels/testing/reference.h"

namespace fuselage::int8::attention {

using kernels::OpCall;

struct Case {
  Shape q, k, v, mask;  // No mask: {}.
  bool bool_mask = false, causal = false;
  double softcap = 0;
};

inline std::vector<Case> Cases() {
  return {{{1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}, {}},
          {{2, 3, 7, 5}, {2, 3, 9, 5}, {2, 3, 9, 4}, {}},
          {{1, 2, 50, 32}, {1, 2, 50, 32}, {1, 2, 50, 32}, {2, 50, 50}},     // A vision transformer's.
          {{4, 3, 49, 32}, {4, 3, 49, 32}, {4, 3, 49, 32}, {4, 1, 49, 49}},  // Windows.
          {{1, 1, 100, 16}, {1, 1, 300, 16}, {1, 1, 300, 40}, {}},           // Two blocks of queries.
          {{1, 1, 40, 16}, {1, 1, 3000, 16}, {1, 1, 3000, 8}, {}},           // Three, of many keys.
          {{1, 2, 90, 8}, {1, 2, 90, 8}, {1, 2, 90, 8}, {}, false, true},
          {{1, 1, 300, 8}, {1, 1, 300, 8}, {1, 1, 300, 40}, {}, false, true},  // Blocks that see a part of the keys.
          {{1, 6, 33, 8}, {1, 2, 33, 8}, {1, 2, 33, 8}, {}, false, true},      // Blocks across heads.
          {{1, 2, 200, 8}, {1, 1, 20, 8}, {1, 1, 20, 8}, {}, false, true},     // More queries than keys.
          {{1, 8, 1, 64}, {1, 2, 513, 64}, {1, 2, 513, 64}, {1, 1, 1, 513}, true},  // One token, its cache.
          {{2, 2, 5, 300}, {2, 2, 6, 300}, {2, 2, 6, 3}, {5, 1}, true},             // Deep; whole queries masked.
          {{6, 20, 8}, {6, 21, 8}, {6, 21, 8}, {20, 21}, false, false, 1.5},
          {{5, 4}, {6, 4}, {6, 4}, {6}, true, true, 3.0},
          {{2, 1, 2, 3, 4}, {2, 1, 1, 5, 4}, {2, 1, 1, 5, 4}, {2, 1, 1, 3, 5}}};
}

struct Types {
  DType q, k, v, result;
};

inline OpCall CallOf(const Case& c, const Types& types, int n) {
  const int zero_points[] = {0, 255, 128, 7};
  const auto codes = [&](DType dtype, const Shape& shape, int i) {
    const int zero_point = zero_points[(n + i) % 4];
    return SeededTensor(kernels::Codes(dtype, shape, 0.02f, dtype == DType::kI8 ? zero_point - 128 : zero_point),
                        1 + i);
  };
  // Some weights are near, some far from the largest.
  const double scale = 3 / std::sqrt(static_cast<double>(c.q.back()));
  OpCall call{"int8.attention",
              {codes(types.q, c.q, 0), codes(types.k, c.k, 1), codes(types.v, c.v, 2), std::nullopt},
              {{"scale", scale}, {"is_causal", c.causal}, {"softcap", c.softcap}, {"out_dtype", types.result}}};
  if (types.result != DType::kF32) {
    call.attributes.emplace("out_scale", 0.015);
    call.attributes.emplace("out_zero_point", types.result == DType::kU8 ? 120 : -17);
  }
  if (c.mask.empty()) return call;
  Tensor mask = SeededTensor(kernels::Floats(c.mask), 4);
  if (c.bool_mask) {
    Tensor bools(DType::kBool, c.mask);
    for (int64_t i = 0; i < mask.num_elements(); ++i) bools.Set(i, mask.At(i) > 0.3);
    mask = bools;
  }
  call.operands[3] = mask;
  return call;
}

inline std::vector<OpCall> Calls() {
  const DType u8 = DType::kU8, i8 = DType::kI8, f32 = DType::kF32;
  const Types types[] = {{u8, u8, u8, u8}, {i8, i8, i8, i8},  {u8, i8, u8, f32},
                         {i8, u8, i8, u8}, {i8, i8, u8, f32}, {u8, u8, i8, i8}};
  std::vector<OpCall> calls;
  int n = 0;
  for (const Case& c : Cases()) {
    for (int i = 0; i < 3; ++i, ++n) calls.push_back(CallOf(c, types[n % 6], n));
  }
  return calls;
}

}  // namespace fuselage::int8::attention

#endif  // FUSELAGE_KERNELS_INT8_ATTENTION_ATTENTION_CASES_H_
