// Calls of attention, for tests on every device.
#ifndef FUSELAGE_KERNELS_ATTENTION_ATTENTION_CASES_H_
#define FUSELAGE_KERNELS_ATTENTION_ATTENTION_CASES_H_

#include <cmath>
#include <optional>
#include <vector>

#include "ir/base/tensor.h"
#include "kernels/core/testing/testing.h"
#include "kernels/testing/reference.h"

namespace fuselage::attention {

using kernels::OpCall;

struct Case {
  Shape q, k, v, mask;  // No mask: {}.
  bool bool_mask = false, causal = false;
  double softcap = 0;
};

inline OpCall CallOf(const Case& c) {
  OpCall call{
      "scaled_dot_product_attention",
      {SeededTensor(kernels::Floats(c.q), 1), SeededTensor(kernels::Floats(c.k), 2),
       SeededTensor(kernels::Floats(c.v), 3), std::nullopt},
      {{"scale", 2 / std::sqrt(static_cast<double>(c.q.back()))}, {"is_causal", c.causal}, {"softcap", c.softcap}}};
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

inline std::vector<Case> Cases() {
  return {{{1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}, {}},
          {{2, 3, 7, 5}, {2, 3, 9, 5}, {2, 3, 9, 4}, {}},
          {{1, 2, 50, 32}, {1, 2, 50, 32}, {1, 2, 50, 32}, {2, 50, 50}},     // A vision transformer's.
          {{4, 3, 49, 32}, {4, 3, 49, 32}, {4, 3, 49, 32}, {4, 1, 49, 49}},  // Windows.
          {{1, 1, 100, 16}, {1, 1, 300, 16}, {1, 1, 300, 40}, {}},           // Two blocks of queries, two of keys.
          {{1, 2, 90, 8}, {1, 2, 90, 8}, {1, 2, 90, 8}, {}, false, true},
          {{1, 6, 33, 8}, {1, 2, 33, 8}, {1, 2, 33, 8}, {}, false, true},           // Blocks across heads.
          {{1, 2, 200, 8}, {1, 1, 20, 8}, {1, 1, 20, 8}, {}, false, true},          // More queries than keys.
          {{1, 8, 1, 64}, {1, 2, 513, 64}, {1, 2, 513, 64}, {1, 1, 1, 513}, true},  // One token, its cache.
          {{2, 2, 5, 300}, {2, 2, 6, 300}, {2, 2, 6, 3}, {5, 1}, true},             // Deep; whole queries masked.
          {{6, 20, 8}, {6, 21, 8}, {6, 21, 8}, {20, 21}, false, false, 1.5},
          {{5, 4}, {6, 4}, {6, 4}, {6}, true, true, 3.0},
          {{2, 1, 2, 3, 4}, {2, 1, 1, 5, 4}, {2, 1, 1, 5, 4}, {2, 1, 1, 3, 5}}};
}

}  // namespace fuselage::attention

#endif  // FUSELAGE_KERNELS_ATTENTION_ATTENTION_CASES_H_
