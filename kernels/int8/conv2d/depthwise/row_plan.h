// How the rows of a depthwise convolution, or of small groups, share columns (depthwise.cc).
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_DEPTHWISE_ROW_PLAN_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_DEPTHWISE_ROW_PLAN_H_

#include <cstdint>
#include <vector>

#include "kernels/int8/conv2d/core/problem.h"
#include "kernels/int8/conv2d/depthwise/loops.h"

namespace fuselage::int8::conv2d::depthwise {

// What the dwords of a column hold.
struct DwordForm {
  int rows;                       // The input rows of one dword,
  int channels;                   // or its channels of the group; the other is 1.
  int64_t per_rows;               // Dwords of the same rows.
  int64_t dword_step, rows_step;  // Bytes from one to the next, and to those of other rows.

  int64_t Offset(int64_t dword) const { return dword / per_rows * rows_step + dword % per_rows * dword_step; }
};

DwordForm FormOf(const Geometry& g, const Loops& loops);

// Do dwords have taps of one row?
bool IsAlongRow(const Geometry& g, const DwordForm& form);

// Which input rows serve `count` consecutive output rows.
struct RowPlan {
  int count;
  std::vector<int64_t> inputs;  // Ascending, from the first output row's first tap on.
  // Where these are all output rows, those beside the image are one input, whose weight is the sum of theirs.
  bool joins_padding;
  std::vector<std::vector<int64_t>> taps;  // [output row][kernel row]: which of the inputs it reads.
  int64_t column_bytes;
  std::vector<std::vector<int64_t>> reads;  // The dwords in which each output row has taps.
};

// That of the number of output rows for which an image takes the least time.
RowPlan BestRows(const Geometry& g, const Loops& loops);

}  // namespace fuselage::int8::conv2d::depthwise

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_DEPTHWISE_ROW_PLAN_H_
