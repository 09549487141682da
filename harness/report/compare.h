// Two runs side by side, and whether the later one got worse by more than the noise of either.
#ifndef FUSELAGE_HARNESS_REPORT_COMPARE_H_
#define FUSELAGE_HARNESS_REPORT_COMPARE_H_

#include <string>

#include "harness/results.pb.h"

namespace fuselage::report {

struct Comparison {
  std::string text;  // A table: each figure of the earlier run, with a verdict.
  int worse = 0;     // Figures that got worse, are gone, or cannot be judged.
};

// Medians of latency count as worse or better where the interval of their ratio lies beyond 1 and `tolerance_percent`;
// without samples on both sides they cannot be judged. Accuracy, SNR and memory repeat exactly: beyond the tolerance,
// any change counts. Accuracy on other data or on other numbers of samples is not compared.
Comparison Compare(const Results& before, const Results& now, double tolerance_percent);

}  // namespace fuselage::report

#endif  // FUSELAGE_HARNESS_REPORT_COMPARE_H_
