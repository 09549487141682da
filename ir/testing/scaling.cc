#include "ir/testing/scaling.h"

#include <time.h>

#include <algorithm>
#include <vector>

namespace fuselage::testing {
namespace {

double ThreadSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// What `run` costs on `graph`, in copies of it. Copies go on for as long as it took: whatever slows this machine meanwhile
// slows both.
double CostInCopies(ir::Graph& graph, const std::function<void(ir::Graph& graph)>& run) {
  const std::unique_ptr<ir::Graph> original = graph.Clone();
  const double start = ThreadSeconds();
  run(graph);
  const double end = ThreadSeconds();
  int copies = 0;
  double copied = 0;
  for (; copied < end - start; ++copies, copied = ThreadSeconds() - end) original->Clone();
  return (end - start) / copied * copies;
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

}  // namespace

double GrowthOverCopying(int64_t n, const std::function<std::unique_ptr<ir::Graph>(int64_t size)>& build,
                         const std::function<void(ir::Graph& graph)>& run) {
  constexpr int kTries = 3;
  std::vector<double> small, large;
  for (int i = 0; i < kTries; ++i) {
    small.push_back(CostInCopies(*build(n), run));
    large.push_back(CostInCopies(*build(10 * n), run));
  }
  return Median(large) / Median(small);
}

}  // namespace fuselage::testing
