// Products u8 * i8 by vpmaddubsw, which adds two of them in 16 bits; vpmaddwd then adds two of these in 32. Where
// weights are small, the pairs of several steps (dwords of the depth) are added in 16 bits before that: of three
// instructions for 32 products 2 + 1/4 remain where four steps go together.
//
// A 16-bit lane adds up codes of at most 255 times the weights that it meets. Of these the positive ones add up to at
// most 128 and the negative ones to at least -128 in each lane of a group, so its sums stay within 255 * 128 < 2^15,
// whatever the codes. Which steps form a group is free, since integer sums have no order, and differs from panel to
// panel. A step that exceeds such a lane by itself, as weights of eight bits may, is two parts, each with about half of
// its weights. Networks that were trained have few of these: their largest weights are far from the others.
#ifndef FUSELAGE_KERNELS_CORE_MULTIPLY_PAIRS_H_
#define FUSELAGE_KERNELS_CORE_MULTIPLY_PAIRS_H_

#include <stdint.h>

#include "kernels/core/multiply/multiply.h"

namespace fuselage::kernels {

constexpr int kMaxPairWeight = 64;      // In magnitude: a pair of them fits, whatever their signs.
constexpr int kMaxGroupParts = 4;       // More would save a twentieth of an instruction each.
constexpr int64_t kMaxPairParts = 512;  // Of a chunk: what is grouped, and multiplied, at once.

// What the weights of a kernel are, as pairs.
enum class Pairs {
  kFit,     // None exceeds kMaxPairWeight: each step is one part.
  kMostly,  // Few steps are two: products take less time than those of 16-bit values do, mostly.
  kExceed,
};
// `mean` and `largest`: of the weights' magnitudes.
constexpr Pairs PairsOf(double mean, int64_t largest) {
  constexpr double kMostMean = 27;  // With more, mostly, more than half of the steps are two parts.
  return largest <= kMaxPairWeight ? Pairs::kFit : mean <= kMostMean ? Pairs::kMostly : Pairs::kExceed;
}

// A chunk begins with it. The parts' weights, in the order of their groups, follow the places of as many parts as there
// can be.
struct PairGroups {
  int32_t count[kMaxGroupParts];  // Of groups of 4, 3, 2 and 1 parts, which come in that order.

  // Behind it: which of Multiply::offsets is each part's.
  const int32_t* steps() const { return reinterpret_cast<const int32_t*>(this + 1); }
  int32_t* steps() { return reinterpret_cast<int32_t*>(this + 1); }
};

// Of `parts` at most.
constexpr int64_t PairWeightsOffset(int64_t parts) {
  return (int64_t{sizeof(PairGroups)} + parts * int64_t{sizeof(int32_t)} + 63) / 64 * 64;
}
constexpr int64_t PairChunkBytes(int64_t parts) { return PairWeightsOffset(parts) + parts * kPanelBytes; }

// How a panel of so many steps lies.
struct PairPanel {
  int64_t steps;
  int parts_of_step;  // At most: 1 or 2.

  static constexpr PairPanel Of(int64_t steps, Pairs pairs) { return {steps, pairs == Pairs::kFit ? 1 : 2}; }

  // As few chunks of equal size as they can be; the last may have fewer steps.
  constexpr int64_t chunk_steps() const {
    const int64_t most = kMaxPairParts / parts_of_step, chunks = steps == 0 ? 1 : (steps + most - 1) / most;
    return steps == 0 ? 1 : (steps + chunks - 1) / chunks;
  }
  constexpr int64_t chunk_bytes() const { return PairChunkBytes(chunk_steps() * parts_of_step); }
  // Of all chunks.
  constexpr int64_t bytes() const {
    const int64_t rest = steps % chunk_steps();
    return steps / chunk_steps() * chunk_bytes() + (rest > 0 ? PairChunkBytes(rest * parts_of_step) : 0);
  }
};

// From [steps][16][4 bytes] of weights, in the depth's order, to a panel's chunks, in place.
void GroupPairs(const PairPanel& panel, uint8_t* weights);

}  // namespace fuselage::kernels

#endif  // FUSELAGE_KERNELS_CORE_MULTIPLY_PAIRS_H_
