// The generic drivers behind the variants, one per file.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_VARIANTS_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_VARIANTS_H_

#include <memory>

#include "kernels/int8/conv2d/primitives.h"
#include "kernels/int8/conv2d/variant.h"

namespace fuselage::int8::conv2d {

std::unique_ptr<Algorithm> MakeReference(const Problem& problem);

// Any convolution whose operands lie by rows.
inline bool DirectSupports(const Problem& problem) { return problem.by_rows(); }
std::unique_ptr<Algorithm> MakeDirect(const Problem& problem, const DirectPrimitives& primitives);

// 3x3, stride 1, dilation 1, one group, operands by rows, and weights small enough for the proof in conv2d_winograd.cc.
bool WinogradSupports(const Problem& problem);
bool WinogradWorthwhile(const Problem& problem, const WinogradPrimitives& primitives);
std::unique_ptr<Algorithm> MakeWinograd(const Problem& problem, const WinogradPrimitives& primitives);

// Any placement of the operands; padding and stride up to those of tiled_input.cc.
bool TiledSupports(const Problem& problem);
bool TiledWorthwhile(const Problem& problem);
// Does it read the input where it lies, and its padding from the halo?
bool TiledReadsHalo(const Problem& problem);
kernels::Placement TiledWish(const Problem& problem);
std::unique_ptr<Algorithm> MakeTiled(const Problem& problem, const TiledPrimitives& primitives);

// One input and one output channel per group; operands by rows.
bool DepthwiseSupports(const Problem& problem);
// Groups of 4, 8 or 16 input and as many output channels; operands by rows, primitives that spread.
bool SmallGroupsSupports(const Problem& problem);
// Either.
std::unique_ptr<Algorithm> MakeDepthwise(const Problem& problem, const DepthwisePrimitives& primitives,
                                         const DirectPrimitives& direct);

}  // namespace fuselage::int8::conv2d

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_VARIANTS_H_
