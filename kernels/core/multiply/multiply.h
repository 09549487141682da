// One call of a matrix product's inner loops. A plain struct: the sources behind it are compiled for one instruction
// set.
//
// Four bytes along the depth (two int16, or four u8) are a "dword", and weights lie in panels of 16 output channels:
// [dword][16][4 bytes].
#ifndef FUSELAGE_KERNELS_CORE_MULTIPLY_MULTIPLY_H_
#define FUSELAGE_KERNELS_CORE_MULTIPLY_MULTIPLY_H_

#include <stdint.h>

namespace fuselage::kernels {

constexpr int kPanel = 16;      // Output channels of a weight panel.
constexpr int kMaxRows = 6;     // Of one Multiply.
constexpr int kDwordBytes = 4;  // One step of a Multiply's depth.
constexpr int kPanelBytes = kPanel * kDwordBytes;

// c[r][16*p + j] (+)= sum over d of  a[r][d] . b[p][d][j],  modulo 2^32
struct Multiply {
  const void* a;
  int64_t a_stride;            // Bytes from row to row, where
  const int64_t* row_offsets;  // is null; else these are where rows are. Pairs: null.
  const int64_t* offsets;  // [depth]: where dword d of a row is, in bytes. Its load hides behind the multiplications.
  // Dwords follow each other in runs of so many, of which the first may be in its midst. 0: all do. AVX2 goes by runs,
  // within which no offset is loaded, but for pairs.
  int64_t first_run, run;
  int64_t depth;  // Dwords.
  const void* b;
  int64_t b_stride;  // Bytes from panel to panel.
  int32_t* c;
  int64_t c_stride;  // Elements from row to row.
  // Null, or weights that a later Multiply takes, as many as a panel's of this one: they come into the second-level
  // cache meanwhile. AVX2 leaves them, but for pairs.
  const void* next;
  int parts_of_step;  // Of b, if it is a chunk of pairs (pairs.h).
  int rows;           // 1 .. kMaxRows
  int panels;         // 1 .. as many as the inner loops take.
  bool accumulate;
  bool half;  // The last eight channels of the only panel do not exist: AVX2 leaves their sums as they are.
};

}  // namespace fuselage::kernels

#endif  // FUSELAGE_KERNELS_CORE_MULTIPLY_MULTIPLY_H_
