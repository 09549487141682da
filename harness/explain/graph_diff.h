// The structural difference of two graphs: from their canonical texts (ir/text.h) alone, where large parameters stand
// by their fingerprints, so that no other file is needed; or from the histories in two runs' results, which have of
// parameters the types and scales alone.
#ifndef FUSELAGE_HARNESS_EXPLAIN_GRAPH_DIFF_H_
#define FUSELAGE_HARNESS_EXPLAIN_GRAPH_DIFF_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/results.pb.h"

namespace fuselage::harness {

struct GraphText {
  absl::string_view file;  // Names it in errors and in the difference.
  absl::string_view text;
};

struct GraphDifference {
  int added = 0, removed = 0, changed = 0;
  int renamed = 0;  // Of another name, and otherwise the same: no difference.
  std::string text;
  Results::GraphDifference result;  // Its nodes alone.

  bool equal() const { return added + removed + changed == 0; }
};

// Nodes match by their names. One whose name the other graph lacks matches a node of the same op, type, attributes,
// parameters and matching operands. What nodes were made of, names of modules and of parameters, and the order of nodes
// do not count. InvalidArgument names the file and the line.
absl::StatusOr<GraphDifference> DiffGraphs(const GraphText& before, const GraphText& after);

// Each graph of `now` beside the one that the same pass left in `before`, and the last beside the last; none for a pass
// that `before` has not.
Results::GraphDifferences DiffHistories(const Results& before, const Results& now);

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_EXPLAIN_GRAPH_DIFF_H_
