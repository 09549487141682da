// The inner loops of depthwise.cc, by instruction set.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_DEPTHWISE_LOOPS_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_DEPTHWISE_LOOPS_H_

#include <stdint.h>

#include "kernels/core/variant.h"
#include "kernels/int8/conv2d/core/loops.h"

namespace fuselage::int8::conv2d::depthwise {

// Channels go in blocks. A dword holds four u8 or two int16, input codes as unsigned: a channel's taps of as many input
// rows in one column, or as many channels of a group. Columns of them come in one of these forms.
enum class ColumnForm {
  kRows,    // [rows / a dword's][block's channels]
  kSpread,  // [row][dword of a group][block's channels], each the dword of the channel's group
  kGroups,  // [row][block's dwords]
};
constexpr int kBlock = 64;                        // Channels.
constexpr int kStepBytes = kBlock * kDwordBytes;  // Of a block's dwords.
constexpr int kLeastPixels = 4;                   // Of multiply_input.
struct Columns {
  const uint8_t* rows[4];  // The first column's pixel in each of a dword's rows; groups: in one row.
  int64_t steps[4];        // Bytes from column to column; 0: the row is padding.
  int64_t count;
  int channels;  // At most a block's; of a line, which is one column, any number.
  int group_channels;
  uint8_t flip;
  void* to;         // The part of the first column that has these rows,
  int64_t to_step;  // bytes from column to column.
};
// sums[pixel][channel] = sum over run, tap of
//     columns[pixel*pixel_step + offsets[run] + tap*tap_step][channel] . weight[run][tap][channel]
// where [channel] of the form kGroups is the dword of its group at the offset.
struct Product {
  const uint8_t* columns;  // What `interleave` wrote. Steps and offsets are bytes.
  int64_t pixel_step, tap_step;
  const int64_t* offsets;
  int64_t runs;
  int taps;
  const uint8_t* weight;  // [run][tap][block's channels] dwords.
  int32_t* sums;          // [pixel][block's channels]; of a line [pixel][channel]
  int64_t pixels;
  int channels;
  int group_channels;
};
// A row of outputs of groups, from the input itself: kernel rows of three taps, without dilation.
constexpr int kMostKernelRows = 7;
struct InputRows {
  const uint8_t* rows[kMostKernelRows];  // The first pixel of each kernel row's input, from the block's channels on, or
  int count;                             // null: padding.
  int64_t pixel_bytes;
  int width;            // Pixels of the input.
  int first_x, stride;  // Of the first output's first tap, which may be padding; from output to output.
  const uint8_t* padding;
  const uint8_t* weight;  // [kernel row][dword of a group][tap][block's channels] dwords.
  int64_t pixels;
  int channels;
  int group_channels;
  int32_t* sums;  // [pixel][block's channels], without the bias: in place of codes; null: codes.
};
struct Loops {
  int dword_elements;  // 4: u8; 2: int16.
  bool masks;          // Part of a panel takes no longer than all of it.
  ColumnForm form;
  int64_t column_bytes;     // Of the columns at once: they share the first-level cache with weights, pixels and sums.
  double interleave_steps;  // How many taps' products take as long as kStepBytes of `interleave`.
  void (*interleave)(const Columns&);
  void (*multiply)(const Product&);
  // The same where columns and sums are lines: all channels of each follow those of the one before, and a panel behind
  // the last is read and written, too. Null: there are no lines.
  void (*multiply_line)(const Product&);
  // To the codes of consecutive pixels instead, without a function. False where it does not apply; null: nowhere.
  bool (*multiply_codes)(const Product&, const OutputStage&, const Destination&);
  // At least kLeastPixels; their codes too without a function. Null: none.
  void (*multiply_input)(const InputRows&, const OutputStage&, const Destination&);
};

// Depthwise; groups of 4, 8 or 16 channels.
using GetLoopsFunction = Loops();
FUSELAGE_VARIANTS(GetLoopsFunction, GetLoops)
FUSELAGE_VARIANTS(GetLoopsFunction, GetGroupLoops)
FUSELAGE_VARIANTS(GetLoopsFunction, GetGroupPairLoops)

}  // namespace fuselage::int8::conv2d::depthwise

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_DEPTHWISE_LOOPS_H_
