// A graph as rows of a table, after torch.fx's Graph.print_tabular.
#ifndef FUSELAGE_HARNESS_EXPLAIN_GRAPH_TABLE_H_
#define FUSELAGE_HARNESS_EXPLAIN_GRAPH_TABLE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "harness/results.pb.h"
#include "ir/graph.h"

namespace fuselage::harness {

// A node as print_tabular shows it, with what it computes: `fc1 = linear(activation="relu")`; a placeholder's is its
// name, the output's is "output".
std::string TargetOf(const ir::Node& node);

// All rows. `after` is the step that made the graph.
Results::GraphTable TableOf(const ir::Graph& graph, absl::string_view after);

// Fills in what `after` says against `before`: new and changed rows (users do not count), and removed nodes.
void MarkChanges(const Results::GraphTable& before, Results::GraphTable* after);

// The first and the last rows where there are more than `most`.
Results::GraphTable Abridged(Results::GraphTable table, int most);

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_EXPLAIN_GRAPH_TABLE_H_
