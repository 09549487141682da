// The cheapest way to divide nodes into two sides.
#ifndef FUSELAGE_PASSES_QUANTIZE_MIN_CUT_H_
#define FUSELAGE_PASSES_QUANTIZE_MIN_CUT_H_

#include <cstddef>
#include <limits>
#include <vector>

namespace fuselage::quantize {

// A minimum s-t cut by augmenting along shortest paths (Dinic, Soviet Mathematics Doklady 11, 1970): O(V^2 E), and
// next to linear on graphs as sparse as a network's.
class MinCut {
 public:
  static constexpr double kInfinite = std::numeric_limits<double>::infinity();

  // Indices count from 0.
  int AddNode();
  // What it costs to have `node` on the first side, and on the second.
  void AddCost(int node, double first, double second);
  // What it costs to have `a` on the first side and `b` on the second; not the other way around.
  void AddCrossing(int a, int b, double cost);

  // By node: is it on the first side? Not to be called twice. The costs of some division must be finite.
  std::vector<bool> FirstSide();

 private:
  struct Edge {
    int to;
    double capacity;  // That is left.
  };

  void AddEdge(int from, int to, double capacity);
  bool FindLevels();
  double Augment(int node, double most);

  // Nodes 0 and 1 are source (first side) and sink. edges_[i ^ 1] is the reverse of edges_[i].
  std::vector<Edge> edges_;
  std::vector<std::vector<int>> edges_from_ = std::vector<std::vector<int>>(2);
  std::vector<int> level_;
  std::vector<size_t> next_;  // By node: the first of its edges that may still lead to the sink.
};

}  // namespace fuselage::quantize

#endif  // FUSELAGE_PASSES_QUANTIZE_MIN_CUT_H_
