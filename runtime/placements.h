// ChoosePlacements: decides, once and for the whole graph, where the codes of each value lie
// (kernels/core/placement/placement.h).
//
// Kernels prefer a placement of their first operand. A value gets the one that its readers prefer if the kernel that
// writes it and all kernels that read it support that placement; otherwise it stays dense. So nothing is moved at run
// time for its layout. Readers that prefer different ones share the widest halo without blocks.
#ifndef FUSELAGE_RUNTIME_PLACEMENTS_H_
#define FUSELAGE_RUNTIME_PLACEMENTS_H_

#include "ir/base/hash_map.h"
#include "ir/graph.h"
#include "kernels/core/placement/placement.h"
#include "kernels/core/registry.h"
#include "runtime/describe.h"

namespace fuselage::runtime {

using Placements = HashMap<const ir::Node*, kernels::Placement>;

// Holds the values that are not dense: results of kernels in codes of rank 4.
Placements ChoosePlacements(const ir::Graph& graph, const Constants& constants, const kernels::KernelRegistry& kernels,
                            kernels::Isa isa, int threads);

}  // namespace fuselage::runtime

#endif  // FUSELAGE_RUNTIME_PLACEMENTS_H_
