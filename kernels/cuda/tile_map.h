// A matrix of bytes in global memory of which Thread::CopyTile copies boxes. Plain data: a kernel's Params hold one.
#ifndef FUSELAGE_KERNELS_CUDA_TILE_MAP_H_
#define FUSELAGE_KERNELS_CUDA_TILE_MAP_H_

#include <cstdint>

namespace fuselage::cuda {

// A box is box_rows by kColumns bytes. In shared memory its rows follow each other, and the 16-byte pieces of row r are
// permuted: address bits 4 and 5 are xored with r / 2. What lies outside of the matrix is 0 there.
struct alignas(64) TileMap {
  static constexpr int kColumns = 64, kMostRows = 256;

  uint8_t encoded[128];  // The same as a CUtensorMap, for a device; EncodeTileMap.
  const uint8_t* data;   // [rows, columns], at a multiple of 16 bytes, as are the rows.
  int rows, columns;
  int box_rows;  // At most kMostRows.
};

}  // namespace fuselage::cuda

#endif  // FUSELAGE_KERNELS_CUDA_TILE_MAP_H_
