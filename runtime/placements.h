// ChoosePlacements: decides, once and for the whole graph, where the codes of each value lie
// (kernels/core/placement/placement.h).
//
// Kernels prefer a placement of their first operand. A value gets the one that its readers prefer if the kernel that
// writes it and all kernels that read it support that placement; otherwise it stays dense. So nothing is moved at run
// time for its layout. Readers that prefer different ones share the widest halo without blocks.
//
// A cat of channels in NHWC has nothing to copy where its operands are written into its result, with the pitch of that.
// An operand is, if it is made in NHWC and its writer and all its readers support the pitch; the writer of what
// regrouping.h puts in NHWC is a permute. It lies in one cat's result: the last that it is an operand of. A cat whose
// operands lie side by side in a later one's result (DenseNet's, where each has the operands of the one before it, and
// one more) is a slice of that.
#ifndef FUSELAGE_RUNTIME_PLACEMENTS_H_
#define FUSELAGE_RUNTIME_PLACEMENTS_H_

#include "ir/base/hash_map.h"
#include "ir/graph.h"
#include "kernels/core/placement/placement.h"
#include "kernels/core/registry.h"
#include "runtime/describe.h"

namespace fuselage::runtime {

// Where a value lies.
struct Place {
  kernels::Placement placement;
  // Not null: in the result of this cat, from this channel on. A cat itself: some operands lie in its result.
  const ir::Node* whole = nullptr;
  int64_t channel = 0;
};

// The placement of what lies in `whole`, a tensor of rank 4 in NHWC.
inline kernels::Placement SliceOf(const ir::Node& whole) {
  return {kernels::Blocking::kNone, 0, static_cast<int>(whole.tensor_type().shape[1])};
}

using Places = HashMap<const ir::Node*, Place>;

// Holds the values that are not dense, or in which others lie. All are results of kernels, codes of rank 4 in NHWC.
Places ChoosePlacements(const ir::Graph& graph, const Constants& constants, const kernels::KernelRegistry& kernels,
                        kernels::Isa isa, int threads);

}  // namespace fuselage::runtime

#endif  // FUSELAGE_RUNTIME_PLACEMENTS_H_
