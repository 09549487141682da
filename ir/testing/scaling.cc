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

double SecondsOf(const std::function<void()>& run) {
  const double start = ThreadSeconds();
  run();
  return ThreadSeconds() - start;
}

}  // namespace

double CostRatio(int64_t n, const std::function<std::function<void()>(int64_t size)>& prepare) {
  constexpr int kTries = 5;
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kTries && least >= kMostIfLinear; ++i) {
    const double small = SecondsOf(prepare(n));
    least = std::min(least, SecondsOf(prepare(10 * n)) / small);
  }
  return least;
}

}  // namespace fuselage::testing
