#include "passes/quantize/min_cut.h"

#include <algorithm>

namespace fuselage::quantize {
namespace {

constexpr int kSource = 0, kSink = 1, kFirstNode = 2;

}  // namespace

int MinCut::AddNode() {
  edges_from_.emplace_back();
  return static_cast<int>(edges_from_.size()) - 1 - kFirstNode;
}

void MinCut::AddCost(int node, double first, double second) {
  AddEdge(node + kFirstNode, kSink, first);
  AddEdge(kSource, node + kFirstNode, second);
}

void MinCut::AddCrossing(int a, int b, double cost) { AddEdge(a + kFirstNode, b + kFirstNode, cost); }

void MinCut::AddEdge(int from, int to, double capacity) {
  if (!(capacity > 0)) return;
  edges_from_[from].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({to, capacity});
  edges_from_[to].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({from, 0});
}

std::vector<bool> MinCut::FirstSide() {
  while (FindLevels()) {
    next_.assign(edges_from_.size(), 0);
    while (Augment(kSource, kInfinite) > 0) {
    }
  }
  std::vector<bool> first;
  for (size_t node = kFirstNode; node < level_.size(); ++node) first.push_back(level_[node] >= 0);
  return first;
}

// Distances from the source over edges with capacity left; false: none leads to the sink.
bool MinCut::FindLevels() {
  level_.assign(edges_from_.size(), -1);
  level_[kSource] = 0;
  std::vector<int> queue = {kSource};
  for (size_t i = 0; i < queue.size(); ++i) {
    for (const int edge : edges_from_[queue[i]]) {
      const auto& [to, capacity] = edges_[edge];
      if (!(capacity > 0) || level_[to] >= 0) continue;
      level_[to] = level_[queue[i]] + 1;
      queue.push_back(to);
    }
  }
  return level_[kSink] >= 0;
}

// Sends at most `most` along one shortest path from `node` to the sink; returns how much.
double MinCut::Augment(int node, double most) {
  if (node == kSink) return most;
  for (size_t& i = next_[node]; i < edges_from_[node].size(); ++i) {
    const int edge = edges_from_[node][i];
    const auto [to, capacity] = edges_[edge];
    if (!(capacity > 0) || level_[to] != level_[node] + 1) continue;
    const double sent = Augment(to, std::min(most, capacity));
    if (!(sent > 0)) continue;
    edges_[edge].capacity -= sent;  // What is left of infinity is infinity.
    edges_[edge ^ 1].capacity += sent;
    return sent;
  }
  return 0;
}

}  // namespace fuselage::quantize
