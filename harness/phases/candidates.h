// Candidates: the network compiled in other ways than the config's, to decide by what each is worth.
#ifndef FUSELAGE_HARNESS_PHASES_CANDIDATES_H_
#define FUSELAGE_HARNESS_PHASES_CANDIDATES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler/engine.h"
#include "compiler/samples.h"
#include "harness/base/statistics.h"
#include "harness/datasets/dataset.h"
#include "harness/measure/accuracy.h"
#include "harness/phases/pass_environment.h"
#include "harness/phases/run_state.h"
#include "passes/core/pipeline.h"

namespace fuselage::harness::phases {

// A number of the config, where 0 is the default.
template <typename T>
T OrDefault(T value, T otherwise) {
  return value > 0 ? value : otherwise;
}

struct Candidate {
  std::unique_ptr<ir::Graph> graph;
  std::vector<passes::PassReport> reports;
  std::unique_ptr<compiler::Engine> engine;  // At the batch that is timed.
  std::vector<double> ms;
};

// Some of a dataset's samples, as the inputs of a network. Borrows both.
struct JudgedSamples {
  const datasets::Dataset* data;  // Null: there is nothing to judge by.
  const compiler::Samples* samples;
  SampleRange range;
};

class Candidates {
 public:
  // For the last variant of the pipeline's last graph that runs; a usage error says that `what` wants one, with a
  // baseline that runs.
  static absl::StatusOr<std::unique_ptr<Candidates>> Make(RunState& run, absl::string_view what);
  ~Candidates();
  Candidates(const Candidates&) = delete;
  Candidates& operator=(const Candidates&) = delete;

  const Variant& variant() const { return *variant_; }
  int64_t batch() const { return batch_; }
  int threads() const { return pool_.threads(); }

  // What the pipeline makes of a copy of `graph`. Ranges of activations are calibrated once for each graph that is
  // quantized. Unimplemented: a step would run by reference evaluation, which is too slow to be a candidate.
  absl::StatusOr<Candidate> Compile(const ir::Graph& graph, const PipelineConfig& pipeline);
  // The first variant's network.
  absl::StatusOr<Candidate> Baseline();

  // In turns, each for `min_time_ms` at least.
  absl::Status Time(double min_time_ms, absl::Span<Candidate* const> candidates);

  // One tensor for each output, of all samples one behind the other.
  absl::StatusOr<std::vector<Tensor>> Outputs(Candidate& candidate, const compiler::Samples& samples,
                                              SampleRange range) const;
  // Fills what the dataset's judge finds: top1 or bits_per_byte.
  absl::Status Judge(const Candidate& candidate, const JudgedSamples& on, Results::Candidate* result);

  // Time and bytes.
  static Results::Candidate ResultOf(const Candidate& candidate);

 private:
  Candidates(RunState& run, const Variant& variant, std::string cache_folder, bool own_folder);
  absl::StatusOr<std::unique_ptr<compiler::Engine>> MakeEngine(const ir::Graph& graph, const Variant& variant,
                                                               int64_t batch, runtime::ThreadPool* pool) const;

  RunState& run_;
  const Variant* const variant_;
  const int64_t batch_;
  runtime::ThreadPool pool_;  // The first number of threads of the benchmark.
  const std::string cache_folder_;
  const bool own_folder_;  // Removed in the end.
  const PassEnvironment environment_;
};

// How far outputs are from the baseline's, into the result: SNR, and where they are logits divergence and agreement.
void RecordError(absl::Span<const Tensor> wanted, absl::Span<const Tensor> found, bool logits,
                 Results::Candidate* result);

// The difference of the medians, now - before.
Results::Gain GainOf(const std::vector<double>& before, const std::vector<double>& now);

}  // namespace fuselage::harness::phases

#endif  // FUSELAGE_HARNESS_PHASES_CANDIDATES_H_
