// Products of tiles, on AMX: see tiled.cc.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_TILED_TILED_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_TILED_TILED_H_

#include <memory>

#include "kernels/int8/conv2d/core/problem.h"
#include "kernels/int8/conv2d/tiled/loops.h"
#include "kernels/core/placement/placement.h"

namespace fuselage::int8::conv2d::tiled {

// Any placement of the operands; padding and stride up to those of input.cc.
bool Supports(const Problem& problem);
bool Worthwhile(const Problem& problem);
bool ComputesBands(const Problem& problem);  // See conv2d.h.
kernels::Placement PreferredInputPlacement(const Problem& problem);
std::unique_ptr<Algorithm> Make(const Problem& problem, const Loops& loops);

}  // namespace fuselage::int8::conv2d::tiled

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_TILED_TILED_H_
