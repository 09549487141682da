#include "harness/base/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace fuselage::harness {

double Percentile(const std::vector<double>& sorted, double p) {
  if (sorted.empty()) return 0;
  const double position = p / 100 * static_cast<double>(sorted.size() - 1);
  const size_t below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

Summary Summarize(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  Summary summary;
  summary.min = samples.front();
  summary.median = Percentile(samples, 50);
  summary.mean = std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
  summary.p90 = Percentile(samples, 90);
  summary.p99 = Percentile(samples, 99);
  return summary;
}

}  // namespace fuselage::harness
