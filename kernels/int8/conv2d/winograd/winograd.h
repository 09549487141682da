// 3x3 convolutions with a quarter of the multiplications, exactly: see winograd.cc.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_WINOGRAD_WINOGRAD_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_WINOGRAD_WINOGRAD_H_

#include <memory>

#include "kernels/int8/conv2d/core/problem.h"
#include "kernels/int8/conv2d/winograd/loops.h"

namespace fuselage::int8::conv2d::winograd {

// 3x3, stride 1, operands by rows, and groups of whole panels.
bool Supports(const Problem& problem);
bool Worthwhile(const Problem& problem, const Loops& loops);
std::unique_ptr<Algorithm> Make(const Problem& problem, const Loops& loops);

}  // namespace fuselage::int8::conv2d::winograd

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_WINOGRAD_WINOGRAD_H_
