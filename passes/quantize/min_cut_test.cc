#include "passes/quantize/min_cut.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "ir/testing/random.h"

namespace fuselage::quantize {
namespace {

struct Problem {
  std::vector<std::array<double, 2>> nodes;  // The cost of the first side and of the second.
  struct Pair {
    int a, b;
    double cost;
  };
  std::vector<Pair> pairs;

  double CostOf(const std::vector<bool>& first) const {
    double cost = 0;
    for (size_t i = 0; i < nodes.size(); ++i) cost += nodes[i][first[i] ? 0 : 1];
    for (const Pair& pair : pairs) cost += first[pair.a] && !first[pair.b] ? pair.cost : 0;
    return cost;
  }

  std::vector<bool> Solved() const {
    MinCut cut;
    for (const auto& [first, second] : nodes) cut.AddCost(cut.AddNode(), first, second);
    for (const Pair& pair : pairs) cut.AddCrossing(pair.a, pair.b, pair.cost);
    return cut.FirstSide();
  }
};

// Costs are small integers, whose sums are exact; some are infinite, as for what has one side only.
TEST(MinCutTest, IsTheCheapestOfAllDivisions) {
  testing::Random random(1);
  for (int round = 0; round < 2000; ++round) {
    Problem problem;
    const int count = static_cast<int>(random.Between(1, 9));
    for (int i = 0; i < count; ++i) {
      problem.nodes.push_back({static_cast<double>(random.Between(0, 9)), static_cast<double>(random.Between(0, 9))});
      if (random.OneIn(5)) problem.nodes.back()[0] = MinCut::kInfinite;
    }
    for (int64_t i = random.Between(0, 3 * count); i > 0; --i) {
      problem.pairs.push_back({static_cast<int>(random.Between(0, count - 1)),
                               static_cast<int>(random.Between(0, count - 1)),
                               static_cast<double>(random.Between(0, 9))});
    }
    double least = MinCut::kInfinite;
    for (int sides = 0; sides < 1 << count; ++sides) {
      std::vector<bool> first;
      for (int i = 0; i < count; ++i) first.push_back((sides >> i & 1) != 0);
      least = std::min(least, problem.CostOf(first));
    }
    EXPECT_EQ(problem.CostOf(problem.Solved()), least) << "round " << round;
  }
}

TEST(MinCutTest, ALongChain) {
  Problem problem;
  for (int i = 0; i < 20000; ++i) {
    problem.nodes.push_back({i % 100 < 50 ? 1.0 : 3.0, 2.0});
    if (i > 0) problem.pairs.push_back({i - 1, i, 5.0});
  }
  const std::vector<bool> first = problem.Solved();
  for (int i = 0; i < 20000; ++i) EXPECT_EQ(first[i], i % 100 < 50) << i;
}

TEST(MinCutTest, NothingToDivide) { EXPECT_TRUE(Problem().Solved().empty()); }

}  // namespace
}  // namespace fuselage::quantize
