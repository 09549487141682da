// Order statistics of a list of measurements.
#ifndef FUSELAGE_HARNESS_BASE_STATISTICS_H_
#define FUSELAGE_HARNESS_BASE_STATISTICS_H_

#include <vector>

namespace fuselage::harness {

// All 0 where there are no samples.
struct Summary {
  double min = 0, median = 0, mean = 0, p90 = 0, p99 = 0;
};

Summary Summarize(std::vector<double> samples);

// The p-th percentile (0 <= p <= 100) of sorted samples, linear between neighbours (type 7 of Hyndman and Fan, 1996).
double Percentile(const std::vector<double>& sorted, double p);

// The samples; of more than 500, that many at equal distances.
std::vector<double> Thinned(const std::vector<double>& samples);

// 95 % confidence intervals by the bootstrap (Efron, "Bootstrap Methods", 1979): both lists, neither of them empty, are
// drawn anew from their samples, with replacement. The same samples give the same interval.
struct Interval {
  double low = 0, high = 0;
};
Interval RatioOfMedians(const std::vector<double>& before, const std::vector<double>& now);       // now / before
Interval DifferenceOfMedians(const std::vector<double>& before, const std::vector<double>& now);  // now - before

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_BASE_STATISTICS_H_
