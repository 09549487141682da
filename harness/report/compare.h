// Two runs side by side, and whether the later one got worse by more than the noise of either.
#ifndef FUSELAGE_HARNESS_REPORT_COMPARE_H_
#define FUSELAGE_HARNESS_REPORT_COMPARE_H_

#include <string>
#include <vector>

#include "harness/results.pb.h"

namespace fuselage::report {

// The 95 % confidence interval of median(now) / median(before), by the bootstrap (Efron, "Bootstrap Methods", 1979):
// both are drawn anew from their samples, with replacement. The same samples give the same interval.
struct Interval {
  double low = 0, high = 0;
};
Interval RatioOfMedians(const std::vector<double>& before, const std::vector<double>& now);

struct Comparison {
  std::string text;  // A table: each figure of the earlier run, with a verdict.
  int worse = 0;     // Figures that got worse, are gone, or cannot be judged.
};

// Medians of latency count as worse or better where the interval lies beyond 1 and `tolerance_percent`; without samples
// on both sides they cannot be judged. Accuracy, SNR and memory repeat exactly: beyond the tolerance, any change
// counts. Accuracy on other data or on other numbers of samples is not compared.
Comparison Compare(const Results& before, const Results& now, double tolerance_percent);

}  // namespace fuselage::report

#endif  // FUSELAGE_HARNESS_REPORT_COMPARE_H_
