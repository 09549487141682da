// Convolution of any form, its input copied row by row: see direct.cc.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_DIRECT_DIRECT_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_DIRECT_DIRECT_H_

#include <memory>

#include "kernels/int8/conv2d/core/problem.h"
#include "kernels/int8/conv2d/direct/loops.h"

namespace fuselage::int8::conv2d::direct {

// Any convolution whose operands lie by rows.
inline bool Supports(const Problem& problem) { return problem.by_rows(); }
inline bool WorthwhilePairs(const Problem& problem) { return problem.pairs() != kernels::Pairs::kExceed; }
bool SupportsFew(const Problem& problem);
// Whether lanes along the depth take fewer products than panels do, and their sums.
bool WorthwhileFew(const Problem& problem, const Loops& loops);
std::unique_ptr<Algorithm> Make(const Problem& problem, const Loops& loops);
// Groups become one, whose weights are zero between them.
std::unique_ptr<Algorithm> MakeFew(const Problem& problem, const Loops& loops);

}  // namespace fuselage::int8::conv2d::direct

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_DIRECT_DIRECT_H_
