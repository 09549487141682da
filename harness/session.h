// What the phases of a run share: the model, the datasets, the thread pool, and the graph of each variant.
#ifndef FUSELAGE_HARNESS_SESSION_H_
#define FUSELAGE_HARNESS_SESSION_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "compiler/engine.h"
#include "compiler/library.h"
#include "compiler/load.h"
#include "compiler/samples.h"
#include "frontend/onnx/names.h"
#include "frontend/onnx/writer/writer.h"
#include "harness/datasets/open.h"
#include "harness/datasets/preprocess.h"
#include "harness/measure/accuracy.h"
#include "harness/measure/image_samples.h"
#include "harness/measure/measure.h"
#include "harness/run.h"
#include "ir/graph.h"
#include "passes/core/pass.h"
#include "runtime/cuda/backend.h"
#include "runtime/thread_pool.h"

namespace fuselage::harness {

struct Variant {
  const HarnessConfig::VariantConfig* config = nullptr;
  compiler::EngineOptions engine;
  std::unique_ptr<ir::Graph> graph;  // Null until its step of the pipeline has run.
  Predictions predictions;
  std::string not_run;  // Why it cannot run; empty: it can.
};

class Session {
 public:
  Session(const RunRequest& request, report::Progress& progress, Recorder& recorder);

  // Each is a phase, in this order; an error ends the run.
  absl::Status CheckVariants();
  absl::Status OpenDatasets();
  absl::Status LoadModel();
  absl::Status FindPeaks();
  absl::Status RunPasses();
  absl::Status SaveOnnx();
  absl::Status ExplainPasses();
  absl::Status PlaceBaseline();
  absl::Status MeasureAccuracy();
  absl::Status SaveOutputs();
  absl::Status MeasureLatency();
  absl::Status MeasureLayers();
  absl::Status ApplyGates();

  // After RunPasses.
  const std::vector<Variant>& variants() const { return variants_; }
  const compiler::Samples& inputs() const { return *inputs_; }

 private:
  // --- session.cc
  void Warn(const std::string& text);
  absl::Status CheckStepNames() const;
  absl::Status OpenCuda();
  absl::Status OpenImages();
  absl::Status RecordModel(const std::string& path, std::vector<std::string> external);
  absl::Status ReadModel(const std::string& path, std::vector<std::string>* external);
  absl::Status PrepareImages();
  void PrepareInputs();
  int random_inputs() const;
  int calibration_samples() const;
  int first_batch() const { return config_.benchmark().batches_size() > 0 ? config_.benchmark().batches(0) : 1; }
  // --- io_phase.cc
  absl::Status ReadInputs();
  void KeepForOnnx(const ir::Graph& graph);
  // --- passes_phase.cc
  std::unique_ptr<passes::Runner> MakeRunner();
  void RecordGraph(absl::string_view step, const ir::Graph& graph);
  absl::Status ObserveStep(int index, absl::string_view step, const ir::Graph& graph);
  // --- accuracy_phase.cc
  bool BaselineRuns() const { return variants_[0].not_run.empty(); }
  void RecordEngine(size_t i, const compiler::Engine& engine);
  int64_t ImagesToSee();
  absl::StatusOr<std::unique_ptr<compiler::Engine>> MakeVariantEngine(const Variant& variant, int64_t batch,
                                                                      runtime::ThreadPool* pool) const;
  absl::Status MeasureVariantAccuracy(size_t i, int64_t images);
  absl::Status CompareVariants();
  int64_t evaluated_samples() const;
  // --- measure_phase.cc
  struct Measured;
  bool uses(absl::string_view backend) const;
  absl::StatusOr<std::vector<Measured>> Contestants(int64_t batch, runtime::ThreadPool* pool);
  MeasureOptions TurnOptions();
  absl::Status MeasureBatch(int64_t batch, int threads);
  absl::Status MeasureBeyondLatency(int64_t batch, absl::Span<const Tensor> inputs, runtime::ThreadPool* pool,
                                    std::vector<Measured>* all);
  absl::Status MeasureMemory(absl::Span<const Tensor> inputs, std::vector<Measured>* all);
  static Results::Measurement MeasurementOf(int64_t batch, int threads, const Measured& first, const Measured& one);
  void CompareThreads();

  const RunRequest& request_;
  const HarnessConfig& config_;
  report::Progress& progress_;
  Recorder& recorder_;

  const compiler::Library& library_;
  std::unique_ptr<runtime::cuda::Backend> cuda_;  // Null where no variant can run on it,
  std::string no_cuda_;                           // and why.

  std::vector<int> threads_;  // Of the benchmark, resolved, each once.
  std::unique_ptr<runtime::ThreadPool> pool_;
  datasets::OpenedDataset calibration_, evaluation_;  // Calibration's data may be null.
  std::unique_ptr<ir::Graph> graph_;
  onnx::Names names_;                      // Of the model's inputs and outputs, each once.
  std::unique_ptr<ir::Graph> onnx_graph_;  // The last before the first INT8 kernel, where save_onnx asks for it.
  std::shared_ptr<const std::vector<Tensor>> given_inputs_;  // Of the config's `inputs`; else null.
  std::optional<datasets::Preprocessor> preprocessor_;
  std::unique_ptr<compiler::Samples> calibration_samples_;  // Null where nothing asks for them.
  std::unique_ptr<compiler::Samples> inputs_;  // What variants run on: test images, given or random values.
  const ImageSamples* images_ = nullptr;       // The same, where they are images with labels.
  std::optional<passes::MachinePeaks> peaks_;
  Results::GraphTable shown_graph_;  // The last that print_graphs recorded, whole.
  std::vector<Variant> variants_;
};

// The graph as a QDQ model for other runtimes, with a batch of any size whatever the options say. Errors name the file
// and the node.
absl::Status WriteOnnx(const ir::Graph& graph, onnx::writer::WriteOptions options, const std::string& path);

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_SESSION_H_
