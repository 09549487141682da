// Layers: what each step of an executable costs.
#ifndef FUSELAGE_HARNESS_MEASURE_LAYERS_H_
#define FUSELAGE_HARNESS_MEASURE_LAYERS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "harness/results.pb.h"
#include "runtime/executable.h"

namespace fuselage::harness {

// Runs with the profile on: every step of the schedule with its median time.
absl::StatusOr<std::vector<Results::Layer>> ProfileLayers(runtime::Executable& executable,
                                                          absl::Span<const Tensor> inputs, int runs);

// Percent of a run that passes outside the kernels: between the steps, and in the joins that end the kernels' loops on
// `pool`, each at what an empty one costs. At least one run.
absl::StatusOr<double> RuntimeOverheadPercent(runtime::Executable& executable, runtime::ThreadPool& pool,
                                              absl::Span<const Tensor> inputs, int runs);

// Bytes that one run moves to and from memory if no cache helps: operands, results and weights of each step, each once.
int64_t CountedBytes(const runtime::Executable& executable);

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_MEASURE_LAYERS_H_
