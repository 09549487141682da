// What the phases of a run share: the request, the report, and what each phase leaves to those after it.
#ifndef FUSELAGE_HARNESS_PHASES_RUN_STATE_H_
#define FUSELAGE_HARNESS_PHASES_RUN_STATE_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler/engine.h"
#include "compiler/library.h"
#include "compiler/samples.h"
#include "frontend/onnx/names.h"
#include "harness/datasets/open.h"
#include "harness/measure/accuracy.h"
#include "harness/recorder.h"
#include "harness/report/progress.h"
#include "harness/request.h"
#include "ir/graph.h"
#include "passes/core/pipeline.h"
#include "runtime/cuda/backend.h"
#include "runtime/thread_pool.h"

namespace fuselage::harness {

struct Variant {
  const HarnessConfig::VariantConfig* config = nullptr;
  compiler::EngineOptions engine;
  std::unique_ptr<ir::Graph> graph;  // Null until its step of the pipeline has run.
  // The last without codes on the way to it, whose values its layers are to have; null: there was none.
  std::shared_ptr<const ir::Graph> float_graph;
  std::string not_run;               // Why it cannot run; empty: it can.

  const std::string& name() const { return config->name(); }
  bool runs() const { return not_run.empty(); }
  // The graph with this batch size.
  absl::StatusOr<std::unique_ptr<ir::Graph>> GraphAt(int64_t batch) const;
};

struct RunState {
  RunState(const RunRequest& request, report::Progress& progress, Recorder& recorder);

  void Warn(const std::string& text);
  // An error names the variant.
  absl::StatusOr<std::unique_ptr<compiler::Engine>> MakeEngine(const Variant& variant, int64_t batch,
                                                               runtime::ThreadPool* pool) const;
  // The first variant is what the others are compared with.
  bool BaselineRuns() const { return variants[0].runs(); }
  // Some variant runs on this backend.
  bool Uses(absl::string_view backend) const;
  int64_t FirstMeasuredBatch() const;  // 0: none was.
  int CalibrationSamples() const;
  // The part of `inputs` that this run evaluates: the config's shard of the first `limit`.
  SampleRange EvaluatedSamples() const;
  // How long the benchmark times each network at least.
  double MinTimeMs() const;

  const RunRequest& request;
  const HarnessConfig& config;
  report::Progress& progress;
  Recorder& recorder;
  const compiler::Library& library;
  const std::vector<int> threads;                   // The benchmark's: cores for 0, and each number once.
  const std::unique_ptr<runtime::ThreadPool> pool;  // Has as many threads as the largest of them.

  kernels::PackedWeights weights;  // Of all engines.

  // CheckVariants.
  std::unique_ptr<runtime::cuda::Backend> cuda;             // Null where no variant can run on it.
  std::deque<Variant> variants;                             // A phase that adds one moves none.
  std::deque<HarnessConfig::VariantConfig> added_variants;  // By phases, beside the config's.

  // OpenDatasets.
  datasets::OpenedDataset calibration, evaluation;  // Calibration's data may be null.

  // LoadModel.
  std::unique_ptr<ir::Graph> graph;                         // RunPasses rewrites it.
  onnx::Names names;                                        // The model's inputs and outputs, each once.
  std::vector<std::string> model_warnings;                  // What was found in its file.
  std::shared_ptr<const std::vector<Tensor>> given_inputs;  // What the config's `inputs` holds; else null.
  std::unique_ptr<compiler::Samples> calibration_samples;   // Null where nothing asks for them.
  std::unique_ptr<compiler::Samples> inputs;                // What variants run on: test data, given or random values.

  // FindPeaks.
  std::optional<passes::MachinePeaks> peaks;

  // RunPasses.
  std::vector<passes::PassReport> pass_reports;
  std::unique_ptr<ir::Graph> imported;    // The graph as read, where the config decides by compiling it in other ways.
  std::unique_ptr<ir::Graph> onnx_graph;  // The last before the first INT8 kernel, where save_onnx asks for it.
};

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_PHASES_RUN_STATE_H_
