// What the phases of a run share: the model, the datasets, the thread pool, and the graph of each variant.
#ifndef FUSELAGE_HARNESS_SESSION_H_
#define FUSELAGE_HARNESS_SESSION_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "harness/datasets/open.h"
#include "harness/datasets/preprocess.h"
#include "harness/measure/accuracy.h"
#include "harness/measure/engine.h"
#include "harness/measure/samples.h"
#include "harness/run.h"
#include "ir/graph.h"
#include "kernels/core/registry.h"
#include "passes/core/registry.h"
#include "runtime/thread_pool.h"

namespace fuselage::harness {

struct Variant {
  const HarnessConfig::VariantConfig* config = nullptr;
  EngineOptions engine;
  std::unique_ptr<ir::Graph> graph;  // Null until its step of the pipeline has run.
  Predictions predictions;
};

class Session {
 public:
  Session(const RunRequest& request, report::Progress& progress, Recorder& recorder);

  // Each is a phase, in this order; an error ends the run.
  absl::Status CheckVariants();
  absl::Status OpenDatasets();
  absl::Status LoadModel();
  absl::Status RunPasses();
  absl::Status MeasureAccuracy();
  absl::Status MeasureLatency();
  absl::Status MeasureLayers();
  absl::Status ApplyGates();

 private:
  // --- session.cc
  void Warn(const std::string& text);
  absl::Status CheckStepNames() const;
  // --- passes_phase.cc
  absl::StatusOr<std::vector<Tensor>> Interpret(const ir::Graph& graph, const std::vector<Tensor>& inputs) const;
  absl::Status ObserveStep(int index, absl::string_view step, const ir::Graph& graph);
  // --- measure_phase.cc
  absl::StatusOr<std::unique_ptr<Engine>> MakeVariantEngine(const Variant& variant, int64_t batch,
                                                            runtime::ThreadPool* pool) const;
  absl::Status MeasureBatch(int64_t batch, int threads);
  bool uses_reference() const;

  const RunRequest& request_;
  const HarnessConfig& config_;
  report::Progress& progress_;
  Recorder& recorder_;

  ir::OpRegistry ops_;
  kernels::KernelRegistry kernels_;
  passes::PassRegistry passes_;

  std::vector<int> threads_;  // Of the benchmark, resolved, each once.
  std::unique_ptr<runtime::ThreadPool> pool_;
  datasets::OpenedDataset calibration_, evaluation_;  // Calibration's data may be null.
  std::unique_ptr<ir::Graph> graph_;
  std::optional<datasets::Preprocessor> preprocessor_;
  std::optional<Samples> calibration_samples_, evaluation_samples_;
  std::vector<Variant> variants_;
};

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_SESSION_H_
