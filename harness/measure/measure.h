// Latency: contestants take turns on the same machine, the same batch and the same threads.
#ifndef FUSELAGE_HARNESS_MEASURE_MEASURE_H_
#define FUSELAGE_HARNESS_MEASURE_MEASURE_H_

#include <functional>
#include <vector>

#include "absl/status/status.h"

namespace fuselage::harness {

struct Contestant {
  std::function<absl::Status()> run;
  std::vector<double> ms;       // Filled: one entry for each timed run,
  std::function<void()> timed;  // which this follows, where it is not null: for what else is known of a run.
};

struct MeasureOptions {
  int warmup = 0;          // Untimed runs of each before the first turn.
  int repetitions = 10;    // Timed runs of each, at least,
  double min_time_ms = 0;  // that take at least so long together.
  std::function<void(double fraction)> progress;
};

// Rounds of turns, A B A B, until every contestant has its repetitions and its time. A turn is a few runs in a row, so
// that each finds its own weights in the caches; where a run is short, the first of a turn is not counted, since it
// brings them there.
absl::Status MeasureInTurns(const MeasureOptions& options, std::vector<Contestant>* contestants);

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_MEASURE_MEASURE_H_
