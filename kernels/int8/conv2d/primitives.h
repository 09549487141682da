// The inner loops of one instruction set, as the generic drivers (conv2d_direct.cc, conv2d_winograd.cc,
// conv2d_depthwise.cc, conv2d_tiled.cc) call them. Plain structs and functions only: the sources behind them are
// compiled for that instruction set, and an inline function emitted there must never be the copy that the linker keeps
// for all.
//
// All loops see four bytes of consecutive input channels (two int16, or four u8) as one "dword", and weights in panels
// of 16 output channels: [dword][16][4 bytes].
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_PRIMITIVES_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_PRIMITIVES_H_

#include <stdint.h>

#include "ir/base/elementwise_math.h"
#include "kernels/core/tiles.h"

namespace fuselage::int8::conv2d {

constexpr int kPanel = 16;      // Output channels of a weight panel.
constexpr int kMaxRows = 6;     // Pixels of one Multiply.
constexpr int kDwordBytes = 4;  // One step of a Multiply's depth.
constexpr int kPanelBytes = kPanel * kDwordBytes;

// c[r][16*p + j] (+)= sum over d of  a[r][d] . b[p][d][j],  modulo 2^32
struct Multiply {
  const void* a;
  int64_t a_stride;            // Bytes from row to row, where
  const int64_t* row_offsets;  // is null; else these are where rows are. AVX2: null.
  const int64_t* offsets;  // [depth]: where dword d of a row is, in bytes. Its load hides behind the multiplications.
  int64_t depth;           // Dwords.
  const void* b;
  int64_t b_stride;  // Bytes from panel to panel.
  int32_t* c;
  int64_t c_stride;  // Elements from row to row.
  int rows;          // 1 .. kMaxRows, or WinogradPrimitives::max_rows
  int panels;        // 1 .. max_panels
  bool accumulate;
};

// From accumulators to the output. Codes are handled as u8: i8 codes have their top bit flipped on the way, and zero
// points, lo and hi below are shifted by 128 to match. Arrays hold whole panels.
struct OutputStage {
  const int32_t* bias;
  const float* multiplier;
  const float* float_bias;  // Float output only; then the multiplier is s_x * s_w.
  // An activation that is no clamp, null: none. Then values before it are real, and codes are those of
  // function(v) * function_multiplier.
  const ElementwiseInstruction* function;
  float function_multiplier;
  float residual_multiplier;
  int32_t residual_zero_point;
  int32_t zero_point;
  uint8_t lo, hi;
  uint8_t residual_flip, output_flip;  // 0x80 where the codes are i8, else 0.
  bool has_residual;
  bool is_float;
  bool relu;  // Of a float output; codes have it in `lo`.
  // u8 codes of the whole range with zero point 0, the residual's too, and |v| < 2^31 whatever the sums: nothing to
  // add, clamp or flip, and no function.
  bool plain;
};

// Where a panel's (or several panels') results go. Pointers are at the first pixel and channel of the block.
struct Destination {
  void* output;
  const uint8_t* residual;  // Null: none.
  int64_t pixel_stride;     // Elements.
  int64_t row_stride;       // Elements; for blocks of several rows.
  int64_t residual_pixel_stride, residual_row_stride;
  int channel;   // The first, as an index into OutputStage's arrays.
  int channels;  // How many of the panels' channels exist.
};

struct DirectPrimitives {
  int element_bytes;    // 2: int16, input codes as signed; 1: u8, input codes as unsigned.
  bool scattered_rows;  // Does multiply take row_offsets?
  int max_panels;
  int chunk_depth;  // Dwords whose weights (of max_panels panels) fit the first-level cache.
  // out[i] = x[i] ^ flip, as the element type (int16: sign-extended).
  void (*load)(const uint8_t* x, int64_t count, uint8_t flip, void* out);
  void (*multiply)(const Multiply&);
  // `pixels` rows of accumulators to consecutive pixels.
  void (*finish)(const OutputStage&, const Destination&, const int32_t* c, int64_t c_stride, int pixels);
};

constexpr int kWeightRowPairs[3][2] = {{0, 5}, {1, 2}, {3, 4}};

// Winograd F(4x4, 3x3), see conv2d_winograd.cc. Position p = 6*i + j of a transformed tile.
struct WinogradPrimitives {
  int max_rows, max_panels;  // Of one multiply: tiles, and panels.
  int64_t max_weight_bytes;  // Transformed weights that stay in the second-level cache.
  int64_t least_tiles_late;  // For which it is worthwhile to transform weights that do not stay there.
  // v[p*position_stride + c] = (B'^T d B')[p] of channel c, for `channels` rounded up to 16, where
  // d[p] = pixels[p][c] ^ flip.
  void (*transform_input)(const uint8_t* const pixels[36], int channels, uint8_t flip, int16_t* v,
                          int64_t position_stride);
  // Rows i of (H g H^T), a pair of them that has its sums in common: kWeightRowPairs[row_pair]. Position j of the first
  // row goes to first + j*position_stride (bytes), as [depth][16][2]; so does the second row. g is [depth][9][16][2].
  void (*transform_weight)(const int8_t* g, int64_t depth, int row_pair, void* first, void* second,
                           int64_t position_stride);
  void (*multiply)(const Multiply&);
  // The 4x4 outputs (`rows` x `columns` of them exist) of one tile and panel from its 36 accumulators.
  void (*transform_output)(const OutputStage&, const Destination&, const int32_t* c, int64_t position_stride, int rows,
                           int columns);
};

// Depthwise convolution, see conv2d_depthwise.cc, in blocks of channels. A dword of a channel holds its taps of some
// input rows in one column: four u8, or two int16.
constexpr int kDepthwiseBlock = 64;                                 // Channels.
constexpr int kDepthwiseStepBytes = kDepthwiseBlock * kDwordBytes;  // Of a block's dwords.
struct DepthwiseColumns {
  const uint8_t* rows[4];  // The first column's pixel in each of a dword's rows.
  int64_t steps[4];        // Bytes from column to column; 0: the row is padding.
  int64_t count;
  int channels;  // At most a block's.
  int group_channels;
  uint8_t flip;
  void* to;         // [column][block's channels] dwords,
  int64_t to_step;  // bytes from column to column.
};
// sums[pixel][channel] = sum over run, tap of
//     columns[pixel*pixel_step + offsets[run] + tap*tap_step][channel] . weight[run][tap][channel]
struct DepthwiseProduct {
  const uint8_t* columns;  // What `interleave` wrote. Steps and offsets are bytes.
  int64_t pixel_step, tap_step;
  const int64_t* offsets;
  int64_t runs;
  int taps;
  const uint8_t* weight;  // [run][tap][block's channels] dwords.
  int32_t* sums;          // [pixel][block's channels]
  int64_t pixels;
  int channels;
};
struct DepthwisePrimitives {
  int dword_rows;           // 4: u8, input codes as unsigned; 2: int16, as signed.
  int64_t column_bytes;     // Of the columns at once: they share the first-level cache with weights, pixels and sums.
  double interleave_steps;  // How many taps' products take as long as a column of `interleave`.
  void (*interleave)(const DepthwiseColumns&);
  // Of rows[0], for groups of 4, 8 or 16 channels: to [column][dword of a group][block's channels], the dword of the
  // channel's group. Null: not for this instruction set.
  void (*spread)(const DepthwiseColumns&);
  void (*multiply)(const DepthwiseProduct&);
};

// Four pixels of a tile of sums that exist; the last one repeats where there are fewer.
struct TilePixels {
  uint16_t sums[4];   // Bytes from the tile's first.
  int32_t output[4];  // Bytes from the image's first.
};
struct ResidualPixels {
  int32_t offset[4];
};

// Where the sums of a TileProduct go. Pointers are at the first channel of its first panel.
struct TileResults {
  struct Tile {
    const TilePixels* pixels;
    const ResidualPixels* residual_pixels;
    int count;  // Of both.
    uint8_t* output;
    const uint8_t* residual;
  };
  Tile tiles[kernels::kMaxTileSums];
  const int32_t* c;
  int tile_count, panels;
  int channel;   // The first, as an index into OutputStage's arrays.
  int channels;  // How many of the panels' channels exist.
};

struct TiledPrimitives {
  // Around a thread's calls of run.
  void (*begin)();
  void (*end)();
  // The product, and the results of an earlier one at the same time; either may be null.
  void (*run)(const OutputStage&, const kernels::TileProduct*, const TileResults*);
};

const DirectPrimitives& DirectAvx2();
const WinogradPrimitives& WinogradAvx2();
const DepthwisePrimitives& DepthwiseAvx2();
const DirectPrimitives& DirectAvxVnni();
const WinogradPrimitives& WinogradAvxVnni();
const DirectPrimitives& DirectAvx512Vnni();
const WinogradPrimitives& WinogradAvx512Vnni();
const DepthwisePrimitives& DepthwiseAvx512Vnni();
const TiledPrimitives& TiledAmx();
// The same sources emulated, for tests.
const DirectPrimitives& DirectAvxVnniEmulated();
const WinogradPrimitives& WinogradAvxVnniEmulated();
const DirectPrimitives& DirectAvx512VnniEmulated();
const WinogradPrimitives& WinogradAvx512VnniEmulated();
const DepthwisePrimitives& DepthwiseAvx512VnniEmulated();
const TiledPrimitives& TiledAmxEmulated();

}  // namespace fuselage::int8::conv2d

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_PRIMITIVES_H_
