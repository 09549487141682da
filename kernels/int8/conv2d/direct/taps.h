// Convolution tap by tap, without those that lie outside the input: see taps.cc.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_DIRECT_TAPS_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_DIRECT_TAPS_H_

#include <memory>

#include "kernels/int8/conv2d/core/problem.h"
#include "kernels/int8/conv2d/direct/loops.h"

namespace fuselage::int8::conv2d::direct {

inline bool SupportsTaps(const Problem& problem) { return problem.by_rows() && problem.geometry.few_inside(); }
// Whether there are channels enough to repay that sums are read and written for each tap.
bool WorthwhileTaps(const Problem& problem);
std::unique_ptr<Algorithm> MakeTaps(const Problem& problem, const Loops& loops);

}  // namespace fuselage::int8::conv2d::direct

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_DIRECT_TAPS_H_
