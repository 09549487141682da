// Right factors of products as the tiles read them (primitives.h).
#ifndef FUSELAGE_KERNELS_REPRODUCIBLE_PANELS_H_
#define FUSELAGE_KERNELS_REPRODUCIBLE_PANELS_H_

#include <cstdint>

namespace fuselage::reproducible {

// A right factor [depth, columns] where it lies: element (k, j) at
// (k / inner) * outer_stride + (k % inner) * inner_stride + j * column_stride.
struct RightFactor {
  const float* data = nullptr;
  int64_t inner = 1, outer_stride = 0, inner_stride = 0, column_stride = 0;
};

// A part of it: columns [first, first + columns) of rows [begin, end).
struct RightPart {
  int64_t first, columns, begin, end;
};

// Panels of `width` columns, row by row, the last one filled up with zeros. Returns the distance between panels.
int64_t PackPanels(const RightFactor& factor, const RightPart& part, int64_t width, float* to);

}  // namespace fuselage::reproducible

#endif  // FUSELAGE_KERNELS_REPRODUCIBLE_PANELS_H_
