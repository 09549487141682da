// Fuselage as a library: read a network, quantize it, run it. compiler/example.cc is a whole program.
//
//   Load     a file                 -> a Model: the network in floats
//   Compile  a Model and samples    -> a Model in INT8, by the default pipeline or another
//   Prepare  a Model                -> a Session: kernels, packed weights, memory
//   Run      tensors by their names -> tensors by their names
#ifndef FUSELAGE_COMPILER_COMPILER_H_
#define FUSELAGE_COMPILER_COMPILER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/library.h"
#include "compiler/load.h"
#include "ir/base/tensor.h"
#include "ir/graph.h"
#include "kernels/core/isa.h"
#include "passes/core/pipeline.h"
#include "runtime/cuda/backend.h"
#include "runtime/thread_pool.h"

namespace fuselage {

// An input or an output, by the name that the network's file gives it. Dimension 0 is the batch.
struct Value {
  std::string name;
  TensorType type;
};

// A network. Never changes; copies are the same one.
class Model {
 public:
  const std::vector<Value>& inputs() const;  // For one sample.
  const std::vector<Value>& outputs() const;
  const ir::Graph& graph() const;
  // What Load found in the file that nobody may have meant.
  const std::vector<std::string>& warnings() const;
  // What each pass of Compile did, and what it did not and why; empty before.
  const std::vector<passes::PassReport>& reports() const;

  struct State;
  explicit Model(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  const State& state() const { return *state_; }

 private:
  std::shared_ptr<const State> state_;
};

// An ONNX file, an .ir file that tools/export_fx.py wrote, or what Save wrote. Errors begin with the file and say what
// was found and what was wanted: frontend/onnx/onnx.h lists their codes. `library` must outlive the model.
absl::StatusOr<Model> Load(const std::string& path, const LoadOptions& options = {},
                           const compiler::Library& library = compiler::BuiltIn());

// From floats to INT8: normalize, conv_bn, fusion, quantize, quant_lift, lower, int8_fusion, cleanup.
PipelineConfig DefaultPipeline();

struct CompileOptions {
  PipelineConfig pipeline = DefaultPipeline();
  int threads = 1;               // For calibration; its result does not depend on them.
  int64_t max_memory_bytes = 0;  // 0: no limit.
  // What the machine can do, for passes that weigh one form against another: with it, graphs depend on the machine.
  // Null: a typical one (passes::TypicalPeaks).
  const passes::MachinePeaks* peaks = nullptr;
  std::string cache_folder;  // Keeps calibrated ranges, and timings; empty: nothing is kept.
  // Passes that choose by time: for how long each graph runs (0: as compiler::ProfilerOptions has it), and a folder
  // whose timings they take in place of running any; empty: they run them.
  double tune_seconds = 0;
  std::string replay_folder;
};

// `samples`: for each input its values for any number of samples, which dimension 0 counts. Activations are calibrated
// on all of them. InvalidArgument where a name, a type or a number of samples is wrong; else a pass's error.
absl::StatusOr<Model> Compile(const Model& model, std::map<std::string, Tensor> samples,
                              const CompileOptions& options = {});

struct SaveOptions {
  // Weights are stored as they are, and packed for each of these, which this CPU must run.
  std::vector<kernels::Isa> isas = {kernels::BestIsa()};
};

// Writes a .fuse file (docs/artifact.md): Load maps it, and Prepare finds weights packed. Who has the old file mapped
// keeps it.
absl::Status Save(const Model& model, const std::string& path, const SaveOptions& options = {});

struct SessionOptions {
  int threads = 1;
  int64_t batch = 1;                      // 0: any. A run's inputs say which; it is prepared when it is first used.
  int kept_batches = 4;                   // Where any will do: how many stay prepared, those used last.
  kernels::Isa isa = kernels::BestIsa();  // The best that kernels may use.
  // 0: no limit. Weights, in full though sessions share them, and activations of a batch above it: ResourceExhausted.
  // As many batches stay prepared as are below it together.
  int64_t max_memory_bytes = 0;
  // Runs on these threads, several sessions in turns, in place of threads of its own; it must outlive the session.
  runtime::ThreadPool* pool = nullptr;
  std::string device = "cpu";              // Or "reference", the interpreter; or "cuda":
  runtime::cuda::Backend* cuda = nullptr;  // outlives the session.
};

// A tensor to read.
struct Input {
  Input(const Tensor& tensor) : tensor(&tensor) {}  // NOLINT: {{"input", image}} is what callers mean.
  const Tensor* tensor;
};

// Sessions of one model share its weights, whatever their batches: CPUs have them packed, which the model keeps; a GPU
// has them in its memory until the last session goes, twice where kernels want them otherwise for another batch. Memory
// for activations is each session's own. Each runs one call at a time; different ones may run at once.
class Session {
 public:
  Session(Session&&) = default;
  Session& operator=(Session&&) = default;

  // Reads all inputs, whose types must be these; gives the outputs that are asked for, in tensors of whatever type.
  // NotFound where a name is none of the network's. A session for any batch takes what dimension 0 of all inputs says,
  // 1 or more, and has the bits of a session for that one.
  absl::Status Run(const std::map<std::string, Input>& inputs, const std::map<std::string, Tensor*>& outputs);

  // For any batch: those of one sample.
  const std::vector<Value>& inputs() const { return inputs_; }
  const std::vector<Value>& outputs() const { return outputs_; }
  // The outputs of this batch, which is prepared then. InvalidArgument: the session is for another one.
  absl::StatusOr<std::vector<Value>> OutputsAt(int64_t batch);

  int64_t activation_bytes() const;  // Of all batches that are prepared.
  int64_t weight_bytes() const;      // In full, of the batch that wants most.

 private:
  friend absl::StatusOr<Session> Prepare(const Model& model, const SessionOptions& options);
  struct Parts;
  struct Delete {
    void operator()(Parts* parts) const;
  };

  Session() = default;

  std::vector<Value> inputs_, outputs_;
  std::unique_ptr<Parts, Delete> parts_;
};

// Any thread may call it. The model may go before the session; one for any batch keeps what it makes others of. Errors
// that come of a batch name it.
absl::StatusOr<Session> Prepare(const Model& model, const SessionOptions& options = {});

}  // namespace fuselage

#endif  // FUSELAGE_COMPILER_COMPILER_H_
