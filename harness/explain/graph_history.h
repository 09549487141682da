// GraphHistory: every graph of a run, whole, with each node that stays as it is from graph to graph written once.
#ifndef FUSELAGE_HARNESS_EXPLAIN_GRAPH_HISTORY_H_
#define FUSELAGE_HARNESS_EXPLAIN_GRAPH_HISTORY_H_

#include <string>

#include "absl/strings/string_view.h"
#include "harness/results.pb.h"
#include "ir/base/hash_map.h"
#include "ir/graph.h"

namespace fuselage::harness {

class GraphHistoryBuilder {
 public:
  // Adds the graph that the step `after` left, unless it is the one before it. Always the same `history`.
  void Add(const ir::Graph& graph, absl::string_view after, Results::GraphHistory* history);

 private:
  HashMap<std::string, int> index_;  // What a node says -> its place in the history.
};

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_EXPLAIN_GRAPH_HISTORY_H_
