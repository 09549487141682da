// Accuracy: samples of a dataset through an engine, whose outputs a judge sees.
#ifndef FUSELAGE_HARNESS_MEASURE_ACCURACY_H_
#define FUSELAGE_HARNESS_MEASURE_ACCURACY_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/engine.h"
#include "compiler/samples.h"
#include "harness/datasets/dataset.h"

namespace fuselage::harness {

struct SampleRange {
  int64_t first = 0, end = 0;
};

// Returns the fingerprint of the engine's first output for the samples of the range: all its bits in order of the
// samples, whatever the batch, as 16 hex digits. `baseline` is as Judge::Add has it.
absl::StatusOr<std::string> Evaluate(compiler::Engine& engine, const compiler::Samples& samples, SampleRange range,
                                     datasets::Judge* judge, const datasets::Judge* baseline,
                                     const std::function<void(int64_t done)>& progress);

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_MEASURE_ACCURACY_H_
