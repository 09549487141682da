// Products of tiles, as a driver hands them to an AMX source (amx.h). Plain structs only.
//
// A tile of A is 16 rows (pixels) of 64 codes along K, a tile of B 16 columns (output channels) of as many weights, as
// [16][16 columns][4 k]: together one step of K. A tile of C holds their 16 x 16 sums.
#ifndef FUSELAGE_KERNELS_CORE_TILES_H_
#define FUSELAGE_KERNELS_CORE_TILES_H_

#include <cstdint>

namespace fuselage::kernels {

constexpr int kTileRows = 16;  // A, B and C have so many; C as many columns.
constexpr int kTileRowBytes = 64;
constexpr int kTileBytes = kTileRows * kTileRowBytes;
constexpr int kTileSums = kTileRows * kTileRows;
constexpr int kMaxTileSums = 4;  // Tiles of C in one product: as many as hide the latency of one.

// Of an operand that product after product reads again, what the first cache keeps while the other one passes by.
constexpr int64_t kKeptBytes = 32 << 10;

// The sums of tile t and panel p: A at a[t] + offsets[s], times B at b + p * b_panel_bytes + s * kTileBytes, for all s.
struct TileProduct {
  const uint8_t* a[kMaxTileSums];
  int64_t a_row_bytes;     // From row to row of a tile of A.
  const int64_t* offsets;  // [steps], bytes.
  int64_t steps;
  const int8_t* b;
  int64_t b_panel_bytes;
  const int32_t* begin;    // [panels][16 columns]: what sums begin with, null: with zero.
  int tiles, panels;       // tiles * panels <= kMaxTileSums
  bool signed_a;           // Codes are i8, else u8.
  bool b_streams;          // B passes by: it is to leave in the first cache what is there.
  // Weights for later: per step so many cache lines of them, one every prefetch_stride bytes, go to the second-level
  // cache.
  const int8_t* prefetch;
  int prefetch_lines;
  int64_t prefetch_stride;
};

}  // namespace fuselage::kernels

#endif  // FUSELAGE_KERNELS_CORE_TILES_H_
