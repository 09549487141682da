// Products u8 * i8 by vpmaddubsw, which adds two of them in 16 bits; vpmaddwd then adds two of these in 32. Where
// weights are small, the pairs of several steps (dwords of the depth) are added in 16 bits before that: of three
// instructions for 32 products 2 + 1/4 remain where four steps go together.
//
// A 16-bit lane adds up codes of at most 255 times the weights that it meets. Of these the positive ones add up to at
// most 128 and the negative ones to at least -128 in each lane of a group, so its sums stay within 255 * 128 < 2^15,
// whatever the codes. Which steps form a group is free, since integer sums have no order, and differs from panel to
// panel.
#ifndef FUSELAGE_KERNELS_CORE_MULTIPLY_PAIRS_H_
#define FUSELAGE_KERNELS_CORE_MULTIPLY_PAIRS_H_

#include <stdint.h>

#include "kernels/core/multiply/multiply.h"

namespace fuselage::kernels {

constexpr int kMaxPairWeight = 64;      // In magnitude: a pair of them fits, whatever their signs.
constexpr int kMaxGroupSteps = 4;       // More would save a twentieth of an instruction each.
constexpr int64_t kMaxPairSteps = 512;  // Of a chunk: what is grouped, and multiplied, at once.

// Behind the weights of a chunk's steps, which are in the order of their groups.
struct PairGroups {
  int32_t count[kMaxGroupSteps];  // Of groups of 4, 3, 2 and 1 steps, which come in that order.

  // Behind it: which of Multiply::offsets is each step's.
  const int32_t* steps() const { return reinterpret_cast<const int32_t*>(this + 1); }
  int32_t* steps() { return reinterpret_cast<int32_t*>(this + 1); }
};

constexpr int64_t PairChunkBytes(int64_t steps) {
  return (steps * (kPanelBytes + int64_t{sizeof(int32_t)}) + int64_t{sizeof(PairGroups)} + 63) / 64 * 64;
}

// A panel is as few chunks of equal size as it can be; the last may have fewer steps.
constexpr int64_t PairChunkSteps(int64_t steps) {
  const int64_t chunks = steps == 0 ? 1 : (steps + kMaxPairSteps - 1) / kMaxPairSteps;
  return steps == 0 ? 1 : (steps + chunks - 1) / chunks;
}

// Of all chunks of a panel.
constexpr int64_t PairPanelBytes(int64_t steps) {
  const int64_t chunk = PairChunkSteps(steps), rest = steps % chunk;
  return steps / chunk * PairChunkBytes(chunk) + (rest > 0 ? PairChunkBytes(rest) : 0);
}

// From a panel [steps][16][4 bytes] of weights of at most kMaxPairWeight, in the depth's order, to its chunks, in
// place.
void GroupPairs(int64_t steps, uint8_t* panel);

}  // namespace fuselage::kernels

#endif  // FUSELAGE_KERNELS_CORE_MULTIPLY_PAIRS_H_
