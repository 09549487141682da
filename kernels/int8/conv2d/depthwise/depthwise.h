// A channel by itself, or few of them, with channels as the lanes: see depthwise.cc.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_DEPTHWISE_DEPTHWISE_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_DEPTHWISE_DEPTHWISE_H_

#include <memory>

#include "kernels/int8/conv2d/core/problem.h"
#include "kernels/int8/conv2d/depthwise/loops.h"
#include "kernels/int8/conv2d/direct/loops.h"

namespace fuselage::int8::conv2d::depthwise {

// One input and one output channel per group; operands by rows.
bool Supports(const Problem& problem);
// Groups of 4, 8 or 16 input and as many output channels; operands by rows.
bool SupportsSmallGroups(const Problem& problem);
// And weights that vpmaddubsw takes.
inline bool SupportsSmallGroupPairs(const Problem& problem) {
  return problem.pairs() == kernels::Pairs::kFit && SupportsSmallGroups(problem);
}
// Either, with its loops. Results leave by direct's.
std::unique_ptr<Algorithm> Make(const Problem& problem, const Loops& loops, const direct::Loops& direct);

}  // namespace fuselage::int8::conv2d::depthwise

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_DEPTHWISE_DEPTHWISE_H_
