// Branches of one shape that lie along an axis of their own are channels behind each other, which is how convolutions
// read and write them: what splits attention over branches (Zhang et al., "ResNeSt: Split-Attention Networks", 2020; Li
// et al., "Selective Kernel Networks", CVPR 2019) becomes ops on images.
//   cat(unsqueeze(a), unsqueeze(b))       =>  reshape(cat(a, b))          what stack exports
//   f(reshape(x), reshape(y))             =>  reshape(f(x, y))            elementwise, both of the same branches
//   mul(reshape(x), gates)                =>  reshape(mul(x, flatten(gates)))
//   sum over the branches of reshape(x)   =>  add(slice(x), slice(x))     of at most four branches
//   sum over the branches of a stack      =>  add(a, b), along any axis: weighted features (Tan et al., "EfficientDet",
//                                             CVPR 2020)
//   slice(cat(a, b)) that is a            =>  a
//   getitem(split(x), i)                  =>  slice(x)                    but for a split of the batch
#ifndef FUSELAGE_PASSES_NORMALIZE_BRANCHES_H_
#define FUSELAGE_PASSES_NORMALIZE_BRANCHES_H_

#include <vector>

#include "passes/normalize/rules.h"

namespace fuselage::normalize {

// What `node` becomes by the first three; empty where it stays.
std::vector<NewCall> OfBranches(const ir::Node& node);

// The adds that the sum of a stack is; empty where `node` is none.
std::vector<NewCall> SumOfStack(const ir::Node& node);

// The slices whose sum `node` is, but for an axis of 1 that it may keep; empty where it is none.
std::vector<NewCall> SummedBranches(const ir::Node& node);

// The operand of a cat that `node` takes out of it again; null where it takes none, or something else.
ir::Node* SlicedOperandOrNull(const ir::Node& node);

// The slice that a getitem of a split is; empty where it is none.
std::vector<NewCall> PartOfSplit(const ir::Node& node);

}  // namespace fuselage::normalize

#endif  // FUSELAGE_PASSES_NORMALIZE_BRANCHES_H_
