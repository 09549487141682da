// Matrices of codes on their way to shared memory, in 16-byte pieces.
#ifndef FUSELAGE_KERNELS_CUDA_FETCH_H_
#define FUSELAGE_KERNELS_CUDA_FETCH_H_

#include <cstdint>

#include "kernels/cuda/block.h"
#include "kernels/cuda/codes.h"

namespace fuselage::cuda {

// Part of a matrix in global memory: from `first` on, the first code of its first line.
struct Lines {
  const uint8_t* first;
  int pitch;           // From line to line, 16-byte aligned where it is a multiple of 16; otherwise 4-byte aligned.
  int lines, codes;    // Those that there are, of codes in each line; it may be none, or fewer.
  const uint8_t* end;  // Of all that may be loaded.
  uint8_t padding;     // The code that stands for those that are not there.
};

// Codes that are not there come from a register. In memory they would have one address, and copies of one address,
// which go past L1, wait for each other in the L2 cache, all of a device's.
template <int kBytes>
FUSELAGE_DEVICE Vector<uint32_t, kBytes / 4> Padding(uint8_t code) {
  Vector<uint32_t, kBytes / 4> codes;
  FUSELAGE_UNROLL
  for (int i = 0; i < kBytes / 4; ++i) codes.values[i] = Splat(code);
  return codes;
}

// Starts to copy to shared memory what is there, and stores padding otherwise.
template <int kBytes>
FUSELAGE_DEVICE void CopyOrPad(Thread thread, uint32_t to, const uint8_t* from, bool is_there, uint8_t padding) {
  if (is_there) {
    thread.CopyAsync<kBytes>(to, from);
  } else {
    thread.StoreShared(to, Padding<kBytes>(padding));
  }
}

// `codes` has zeros behind the first `count`, and gets those of `padding` there.
FUSELAGE_DEVICE Codes16 Overlay(const Codes16& padding, Codes16 codes, int count) {
  FUSELAGE_UNROLL
  for (int i = 0; i < 4; ++i) {
    const int here = count - 4 * i;
    const uint32_t behind = here >= 4 ? 0u : here <= 0 ? ~0u : ~0u << 8 * here;
    codes.values[i] |= padding.values[i] & behind;
  }
  return codes;
}

// Fetches kLines lines of 16 * kPieces codes to place(line, piece), by all threads of a block, with cp.async where
// lines are aligned: the caller commits and waits.
template <int kLines, int kPieces, int kThreads, typename PlaceOf>
FUSELAGE_DEVICE void FetchLines(Thread thread, const Lines& from, PlaceOf place) {
  constexpr int kApart = kThreads / kPieces;
  static_assert(kThreads % kPieces == 0 && kLines % kApart == 0);
  const int line = thread.index() / kPieces, piece = thread.index() % kPieces;
  const int codes = from.codes - 16 * piece, lines = codes > 0 ? from.lines - line : 0;
  const uint8_t* first = from.first + int64_t{line} * from.pitch + 16 * piece;
  if (from.pitch % 16 == 0) {
    FUSELAGE_UNROLL
    for (int i = 0; i < kLines; i += kApart) {
      CopyOrPad<16>(thread, place(line + i, piece), first + int64_t{i} * from.pitch, i < lines, from.padding);
    }
    return;
  }
  FUSELAGE_NO_UNROLL
  for (int i = 0; i < kLines; i += kApart) {
    Codes16 loaded = Padding<16>(from.padding);
    if (i < lines) loaded = Overlay(loaded, LoadCodes(thread, first + int64_t{i} * from.pitch, codes, from.end), codes);
    thread.StoreShared(place(line + i, piece), loaded);
  }
}

}  // namespace fuselage::cuda

#endif  // FUSELAGE_KERNELS_CUDA_FETCH_H_
