// Which values of a graph linears read, and what absorbs a factor of their channels.
#ifndef FUSELAGE_PASSES_SMOOTH_QUANT_GROUPS_H_
#define FUSELAGE_PASSES_SMOOTH_QUANT_GROUPS_H_

#include <vector>

#include "ir/graph.h"
#include "passes/core/remarks.h"
#include "passes/smooth_quant/smooth_quant.pb.h"

namespace fuselage::smooth_quant {

struct Group {
  ir::Node* value;                 // Its last axis has the channels.
  ir::Node* writer;                // The norm or the linear that absorbs a factor of the value's channels.
  std::vector<ir::Node*> readers;  // Linears of the value, or of views of it that keep the last axis; at least one.
};

// In the graph's order. Remarks say which values that linears read are none, and why.
std::vector<Group> FindGroups(const SmoothQuantOptions& options, const ir::Graph& graph, passes::Remarks& remarks);

}  // namespace fuselage::smooth_quant

#endif  // FUSELAGE_PASSES_SMOOTH_QUANT_GROUPS_H_
