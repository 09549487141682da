#include "harness/measure/measure.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "ir/base/status.h"

namespace fuselage::harness {
namespace {

constexpr int kTurnRuns = 2;
constexpr double kTurnMs = 50;
// A run this long pays for refilling the caches itself: about 1 ms at 10 GB/s.
constexpr double kLongRunMs = 100;

absl::StatusOr<double> TimedRun(const Contestant& contestant) {
  const auto start = std::chrono::steady_clock::now();
  RETURN_IF_ERROR(contestant.run());
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

double Total(const std::vector<double>& ms) { return std::accumulate(ms.begin(), ms.end(), 0.0); }

// How much of what is asked for a contestant has: 1 is all.
double Fraction(const MeasureOptions& options, const std::vector<double>& ms) {
  const double runs = options.repetitions > 0 ? static_cast<double>(ms.size()) / options.repetitions : 1;
  const double time = options.min_time_ms > 0 ? Total(ms) / options.min_time_ms : 1;
  return std::min({runs, time, 1.0});
}

}  // namespace

absl::Status MeasureInTurns(const MeasureOptions& options, std::vector<Contestant>* contestants) {
  for (const Contestant& contestant : *contestants) {
    for (int i = 0; i < options.warmup; ++i) RETURN_IF_ERROR(contestant.run());
  }
  while (true) {
    double fraction = 1;
    for (Contestant& contestant : *contestants) {
      if (contestant.ms.empty() || contestant.ms.back() < kLongRunMs) RETURN_IF_ERROR(contestant.run());
      double turn_ms = 0;
      for (int run = 0; run < kTurnRuns || turn_ms < kTurnMs; ++run) {
        ASSIGN_OR_RETURN(const double ms, TimedRun(contestant));
        contestant.ms.push_back(ms);
        if (contestant.timed) contestant.timed();
        turn_ms += ms;
      }
      fraction = std::min(fraction, Fraction(options, contestant.ms));
    }
    if (options.progress) options.progress(fraction);
    if (fraction >= 1) return absl::OkStatus();
  }
}

}  // namespace fuselage::harness
