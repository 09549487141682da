// Pass: one rewrite of a graph. A pass's folder holds its class, its options message, its text cases and Register.
#ifndef FUSELAGE_PASSES_CORE_PASS_H_
#define FUSELAGE_PASSES_CORE_PASS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ir/base/status.h"
#include "ir/graph.h"
#include "passes/core/remarks.h"

namespace fuselage::kernels {
class KernelRegistry;
}

namespace fuselage::passes {

// How far a pass may move the graph's outputs; the pipeline's numeric check holds it to that.
struct NumericContract {
  enum Kind {
    kBitExact,   // Not at all.
    kTolerance,  // max |difference| <= tolerance * max |output|.
    kQuantizes,  // By rounding to codes; the pipeline reports the SNR, and checks that what was finite is. Text cases
                 // hold the outputs to `tolerance` of their range.
    kOneCode,    // Where the output is quantized or comes from codes: lowered integer arithmetic against float QDQ,
                 // which rounds the bias to int32. Checked by SNR >= 30 dB against the graph before the pass, or
                 // what kQuantizes left of it less 3 dB, where that is lower.
  };
  Kind kind = kBitExact;
  double tolerance = 0;
  bool of_config = false;  // What the pass does is written in the config, and so is the mistake where it breaks this.
};

class Pass {
 public:
  virtual ~Pass() = default;

  virtual absl::string_view name() const = 0;

  // Rewrites the graph; true: something changed. Removes dead nodes, before and after, and checks Ensures.
  // "No match" is false; an error leaves the graph unusable. Remarks get the pass's name.
  absl::StatusOr<bool> Run(ir::Graph& graph, Remarks& remarks) const;

  virtual NumericContract numeric_contract() const { return {}; }

 protected:
  // Match, check, compute, then mutate: nothing that can fail comes after the first edit.
  virtual absl::StatusOr<bool> RunImpl(ir::Graph& graph, Remarks& remarks) const = 0;

  // What holds after the pass, whether or not it changed anything.
  virtual absl::Status Ensures(const ir::Graph&) const { return absl::OkStatus(); }
};

// Runs a graph on many samples; the harness fills it with the runtime and a dataset. Calibration uses it.
class Runner {
 public:
  virtual ~Runner() = default;

  // For each calibration sample, in order: runs the graph and calls `visit` with the values of `nodes` (f32, row-major,
  // valid during the call). One call at a time, from any thread. What `visit` returns but OK ends it, and is returned.
  virtual absl::Status ForEachSample(
      const ir::Graph& graph, absl::Span<const ir::Node* const> nodes,
      const std::function<absl::Status(int sample, absl::Span<const Tensor* const> values)>& visit) = 0;

  // ForEachSample of the first `most`, or of as many as there are: how many.
  absl::StatusOr<int> ForFirstSamples(
      int most, const ir::Graph& graph, absl::Span<const ir::Node* const> nodes,
      const std::function<absl::Status(int sample, absl::Span<const Tensor* const> values)>& visit);

  // Into how many parts the samples may be divided, which processes that calibrate the same share.
  virtual int Parts() const { return 1; }
  // ForEachSample of one part, which is a range of the samples and may have none.
  virtual absl::Status ForEachSampleOfPart(
      int /*part*/, const ir::Graph& graph, absl::Span<const ir::Node* const> nodes,
      const std::function<absl::Status(int sample, absl::Span<const Tensor* const> values)>& visit) {
    return ForEachSample(graph, nodes, visit);
  }

  // Identifies the samples: equal keys, equal values in equal order. Empty: unknown, nothing may be kept by it.
  virtual std::string DataKey() const { return ""; }
};

// Times graphs on the machine that they are to run on.
class Profiler {
 public:
  struct Call {
    std::string op;                    // "int8.conv2d"; "reorder" where the runtime changes a layout.
    std::vector<std::string> sources;  // Node::SourcesOrSelf of the call; none of what the runtime inserted.
    int64_t bytes = 0;                 // Operands, results and weights, each once.
    double seconds = 0;                // The lower quartile of several runs on one thread.
  };
  virtual ~Profiler() = default;

  // For each graph the calls of a run, in order. The graphs take turns, so that what disturbs the machine meets them
  // all. A pipeline's profiler runs the passes that are still to come on copies first, so that what is timed is what
  // will run.
  virtual absl::StatusOr<std::vector<std::vector<Call>>> Profile(absl::Span<const ir::Graph* const> graphs) = 0;
};

// What the machine that the graph is to run on can do, measured: the roofline's two roofs (Williams, Waterman and
// Patterson, "Roofline", CACM 2009) for one thread, and what a kernel call costs by itself.
struct MachinePeaks {
  double f32_flops_per_second = 0;  // A multiply-accumulate is two.
  double int8_ops_per_second = 0;   // The same count.
  double bytes_per_second = 0;      // Memory, far beyond the caches.
  double seconds_per_call = 0;
};

// What a pass may need beyond the graph; null where the caller has none, and a pass that needs it says so.
struct PassEnvironment {
  Runner* runner = nullptr;
  const kernels::KernelRegistry* kernels = nullptr;
  const MachinePeaks* peaks = nullptr;  // For cost models.
  Profiler* profiler = nullptr;         // For choices by time.
  std::string cache_folder;             // For what may be kept between runs (calibration); empty: nothing is.
};

// Removes calls and get_attrs without uses, then modules and parameters that nothing names. Placeholders stay.
// Returns how many of all these it removed. Linear.
int64_t RemoveDeadNodes(ir::Graph& graph);

}  // namespace fuselage::passes

#endif  // FUSELAGE_PASSES_CORE_PASS_H_
