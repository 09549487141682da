// The phases of a run, each in the file of its name. A phase reads what the phases before it left in the RunState, adds
// its own, and records what it found; an error ends the run.
#ifndef FUSELAGE_HARNESS_PHASES_PHASES_H_
#define FUSELAGE_HARNESS_PHASES_PHASES_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "harness/phases/run_state.h"

namespace fuselage::harness::phases {

using Phase = absl::Status (*)(RunState& run);

// The config's variants: which of them can run here, and on what.
absl::Status CheckVariants(RunState& run);
// The images to calibrate and to evaluate on.
absl::Status OpenDatasets(RunState& run);
// The network, and the samples that it is calibrated with and run on.
absl::Status LoadModel(RunState& run);
// What this machine can do at best: by it passes weigh what they do, and variants are predicted.
absl::Status FindPeaks(RunState& run);
// The pipeline, with calibration, numeric checks, dumps of the IR and tables of the graph; each variant gets its graph.
absl::Status RunPasses(RunState& run);

// The quantized network, where the config's save_onnx asks for it.
absl::Status SaveOnnx(RunState& run);
// The last graph as a compiled network, where the config's save_fuse asks for it.
absl::Status SaveFuse(RunState& run);

// Where each op runs, and what crossing between INT8 and float costs.
absl::Status ExplainPasses(RunState& run);

// On the CPU, where CUDA has no kernels for it.
absl::Status PlaceBaseline(RunState& run);
// What each layer does to outputs and time in INT8, where the config asks for it or for a search.
absl::Status MeasureSensitivity(RunState& run);
// Mixed precision under the config's budget: adds a variant.
absl::Status SearchPrecision(RunState& run);
// What the variants get right; without labels, how far their outputs are from the baseline's.
absl::Status MeasureAccuracy(RunState& run);
// What each variant computes, where the config's save_outputs asks for it.
absl::Status SaveOutputs(RunState& run);
// Latency and memory of every variant, at each batch and number of threads of the benchmark.
absl::Status MeasureLatency(RunState& run);
// What several sessions at once serve, where the config's throughput asks for it.
absl::Status MeasureThroughput(RunState& run);
// The time that each layer takes, and how far it is from the baseline's.
absl::Status MeasureLayers(RunState& run);
// One run of each variant with each number of threads: which thread worked on which step when, and the plan of the
// memory. Writes trace.json.
absl::Status RecordSchedules(RunState& run);
// What each pass gives, where the config asks for it.
absl::Status Ablate(RunState& run);
// What the config demands of all that.
absl::Status ApplyGates(RunState& run);

inline constexpr Phase kCompile[] = {CheckVariants, OpenDatasets, LoadModel, FindPeaks, RunPasses};
inline constexpr Phase kExplain[] = {SaveOnnx, SaveFuse, ExplainPasses};
inline constexpr Phase kMeasure[] = {SaveOnnx,        SaveFuse,    PlaceBaseline,  MeasureSensitivity, SearchPrecision,
                                     MeasureAccuracy, SaveOutputs, MeasureLatency, MeasureThroughput,  MeasureLayers,
                                     RecordSchedules, Ablate,      ApplyGates};

inline constexpr Phase kJudge[] = {SaveOnnx, SaveFuse, PlaceBaseline, MeasureAccuracy, SaveOutputs};

// One after another, up to the first error.
absl::Status Run(absl::Span<const Phase> phases, RunState& run);

}  // namespace fuselage::harness::phases

#endif  // FUSELAGE_HARNESS_PHASES_PHASES_H_
