// Accuracy: the first samples of a dataset through an engine, whose outputs a judge sees.
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

// Returns the fingerprint of the engine's first output for samples 0 ... count - 1: all its bits in order of the
// samples, whatever the batch, as 16 hex digits. `baseline` is as Judge::Add has it.
absl::StatusOr<std::string> Evaluate(compiler::Engine& engine, const compiler::Samples& samples, int64_t count,
                                     datasets::Judge* judge, const datasets::Judge* baseline,
                                     const std::function<void(int64_t done)>& progress);

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_MEASURE_ACCURACY_H_
