#include "kernels/reproducible/panels.h"

#include <algorithm>

namespace fuselage::reproducible {

int64_t PackPanels(const RightFactor& factor, const RightPart& part, int64_t width, float* to) {
  const int64_t panel_floats = (part.end - part.begin) * width;
  for (int64_t column = 0; column < part.columns; column += width, to += panel_floats) {
    const int64_t filled = std::min(width, part.columns - column), stride = factor.column_stride;
    const float* const first = factor.data + (part.first + column) * stride;
    int64_t outer = part.begin / factor.inner, inner = part.begin % factor.inner;
    for (float* row = to; row != to + panel_floats; row += width) {
      const float* from = first + outer * factor.outer_stride + inner * factor.inner_stride;
      if (stride == 1) {
        std::copy_n(from, filled, row);
      } else {
        for (int64_t j = 0; j < filled; ++j) row[j] = from[j * stride];
      }
      std::fill(row + filled, row + width, 0.0f);
      if (++inner == factor.inner) {
        inner = 0;
        ++outer;
      }
    }
  }
  return panel_floats;
}

}  // namespace fuselage::reproducible
