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

// The least of what several runs on graphs of one size took: what disturbs a run only adds to it.
struct Cost {
  double run = std::numeric_limits<double>::infinity(), copy = run;

  void Measure(ir::Graph& graph, const std::function<void(ir::Graph& graph)>& rewrite) {
    const double start = ThreadSeconds();
    const std::unique_ptr<ir::Graph> clone = graph.Clone();
    const double copied = ThreadSeconds();
    rewrite(graph);
    run = std::min(run, ThreadSeconds() - copied);
    copy = std::min(copy, copied - start);
  }
  double InCopies() const { return run / copy; }
};

}  // namespace

double GrowthOverCopying(int64_t n, const std::function<std::unique_ptr<ir::Graph>(int64_t size)>& build,
                         const std::function<void(ir::Graph& graph)>& run) {
  constexpr int kTries = 10;
  Cost small, large;
  for (int i = 0; i < kTries; ++i) small.Measure(*build(n), run);
  for (int i = 0; i < kTries; ++i) {
    large.Measure(*build(10 * n), run);
    if (large.InCopies() < kMostIfLinear * small.InCopies()) break;
  }
  return large.InCopies() / small.InCopies();
}

}  // namespace fuselage::testing
