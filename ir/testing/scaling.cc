#include "ir/testing/scaling.h"

#include <time.h>

#include <algorithm>
#include <limits>

namespace fuselage::testing {
namespace {

double ThreadSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double CostInCopies(ir::Graph& graph, const std::function<void(ir::Graph& graph)>& run) {
  const double start = ThreadSeconds();
  const std::unique_ptr<ir::Graph> copy = graph.Clone();
  const double copied = ThreadSeconds();
  run(graph);
  return (ThreadSeconds() - copied) / (copied - start);
}

}  // namespace

double GrowthOverCopying(int64_t n, const std::function<std::unique_ptr<ir::Graph>(int64_t size)>& build,
                         const std::function<void(ir::Graph& graph)>& run) {
  constexpr int kTries = 3;
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kTries && least >= kMostIfLinear; ++i) {
    const double small = CostInCopies(*build(n), run);
    least = std::min(least, CostInCopies(*build(10 * n), run) / small);
  }
  return least;
}

}  // namespace fuselage::testing
