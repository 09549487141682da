#include "harness/base/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>

namespace fuselage::harness {
namespace {

constexpr int kDraws = 2000;

double MedianOfDraw(const std::vector<double>& samples, std::vector<double>& drawn, std::mt19937_64& random) {
  drawn.resize(samples.size());
  for (double& value : drawn) value = samples[random() % samples.size()];
  const auto middle = drawn.begin() + static_cast<int64_t>(drawn.size() / 2);
  std::nth_element(drawn.begin(), middle, drawn.end());
  return drawn.size() % 2 == 1 ? *middle : (*std::max_element(drawn.begin(), middle) + *middle) / 2;
}

template <typename Statistic>
Interval Bootstrap(const std::vector<double>& before, const std::vector<double>& now, Statistic statistic) {
  std::mt19937_64 random(1);
  std::vector<double> values(kDraws), drawn;
  for (double& value : values) {
    const double old = MedianOfDraw(before, drawn, random);
    value = statistic(old, MedianOfDraw(now, drawn, random));
  }
  std::sort(values.begin(), values.end());
  return {Percentile(values, 2.5), Percentile(values, 97.5)};
}

}  // namespace

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

std::vector<double> Thinned(const std::vector<double>& samples) {
  constexpr size_t kMost = 500;
  const size_t count = std::min(samples.size(), kMost);
  std::vector<double> kept(count);
  for (size_t i = 0; i < count; ++i) kept[i] = samples[i * samples.size() / count];
  return kept;
}

Interval RatioOfMedians(const std::vector<double>& before, const std::vector<double>& now) {
  return Bootstrap(before, now, [](double old, double fresh) { return fresh / old; });
}

Interval DifferenceOfMedians(const std::vector<double>& before, const std::vector<double>& now) {
  return Bootstrap(before, now, [](double old, double fresh) { return fresh - old; });
}

}  // namespace fuselage::harness
