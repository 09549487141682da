#include "compiler/compiler.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/artifact.h"
#include "compiler/calibration_runner.h"
#include "compiler/engine.h"
#include "compiler/engine_cache.h"
#include "compiler/profiler.h"
#include "compiler/samples.h"
#include "ir/base/status.h"
#include "passes/cleanup/cleanup.pb.h"
#include "passes/conv_bn/conv_bn.pb.h"
#include "passes/equalization/equalization.pb.h"
#include "passes/fusion/fusion.pb.h"
#include "passes/int8_fusion/int8_fusion.pb.h"
#include "passes/lower/lower.pb.h"
#include "passes/normalize/normalize.pb.h"
#include "passes/quant_lift/quant_lift.pb.h"
#include "passes/quantize/quantize.pb.h"
#include "passes/volumes/volumes.pb.h"
#include "runtime/executable.h"

namespace fuselage {
namespace {

using compiler::Engine;
using compiler::EngineCache;
using compiler::Library;

std::vector<Value> ValuesOf(const std::vector<std::string>& names, const std::vector<TensorType>& types) {
  std::vector<Value> values;
  for (size_t i = 0; i < names.size(); ++i) values.push_back({names[i], types[i]});
  return values;
}

std::vector<TensorType> TypesOf(const std::vector<ir::Node*>& nodes) {
  std::vector<TensorType> types;
  for (const ir::Node* node : nodes) types.push_back(node->tensor_type());
  return types;
}

// For errors that do not name the batch: compiler::WithBatch's do.
absl::Status OfBatch(const absl::Status& status, int64_t batch) {
  return Annotate(status, absl::StrCat("with a batch of ", batch));
}

// The compiled networks that sessions run: alive as long as one of them is. Their weights stay packed for later ones.
class Programs {
 public:
  using Key = std::tuple<int64_t, kernels::Isa, int, int64_t>;  // Batch, instruction set, threads, most memory.

  // `stored` may be null.
  explicit Programs(compiler::StoredWeights* stored) : stored_(stored) {}

  absl::StatusOr<std::shared_ptr<const runtime::Program>> Get(const ir::Graph& graph, const Library& library,
                                                              const Key& key) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto it = programs_.begin(); it != programs_.end();) it = it->second.expired() ? programs_.erase(it) : ++it;
    std::weak_ptr<const runtime::Program>& kept = programs_[key];
    if (std::shared_ptr<const runtime::Program> program = kept.lock()) return program;
    const auto& [batch, isa, threads, max_memory_bytes] = key;
    ASSIGN_OR_RETURN(const std::unique_ptr<ir::Graph> copy, compiler::WithBatch(graph, batch));
    runtime::ExecutableOptions options;
    options.isa = isa;
    options.max_memory_bytes = max_memory_bytes;
    options.weights = stored_ == nullptr ? &own_ : stored_;
    absl::StatusOr<std::shared_ptr<const runtime::Program>> program =
        runtime::MakeProgram(*copy, library.kernels, threads, options);
    if (!program.ok()) return OfBatch(program.status(), batch);
    if (stored_ != nullptr) RETURN_IF_ERROR(stored_->status());
    kept = *program;
    return program;
  }

 private:
  std::mutex mutex_;
  std::map<Key, std::weak_ptr<const runtime::Program>> programs_;
  kernels::PackedWeights own_;
  compiler::StoredWeights* const stored_;
};

absl::Status CheckThreads(int threads) {
  if (threads >= 1 && threads <= runtime::ThreadPool::kMaxThreads) return absl::OkStatus();
  return UsageError(absl::StrCat("threads is ", threads, ", wanted 1 to ", runtime::ThreadPool::kMaxThreads));
}

template <typename Options>
void AddStep(PipelineConfig* pipeline) {
  pipeline->add_steps()->mutable_pass()->PackFrom(Options());
}

}  // namespace

struct Model::State {
  State(const Library& library, compiler::LoadedGraph given)
      : library(library),
        network(std::move(given)),
        inputs(ValuesOf(network.names.inputs, TypesOf(network.graph->placeholders()))),
        outputs(ValuesOf(network.names.outputs, TypesOf(network.graph->output()->operands()))),
        programs(network.packed.get()) {}

  const Library& library;
  const compiler::LoadedGraph network;
  const std::vector<Value> inputs, outputs;
  mutable Programs programs;
};

const std::vector<Value>& Model::inputs() const { return state_->inputs; }
const std::vector<Value>& Model::outputs() const { return state_->outputs; }
const ir::Graph& Model::graph() const { return *state_->network.graph; }
const std::vector<std::string>& Model::warnings() const { return state_->network.warnings; }
const std::vector<passes::PassReport>& Model::reports() const { return state_->network.reports; }

absl::StatusOr<Model> Load(const std::string& path, const LoadOptions& options, const Library& library) {
  ASSIGN_OR_RETURN(compiler::LoadedGraph loaded, compiler::LoadGraph(path, library.ops, options));
  return Model(std::make_shared<const Model::State>(library, std::move(loaded)));
}

absl::Status Save(const Model& model, const std::string& path, const SaveOptions& options) {
  const Model::State& state = model.state();
  return compiler::WriteArtifact(state.network, state.library.kernels, options.isas, path);
}

PipelineConfig DefaultPipeline() {
  PipelineConfig pipeline;
  AddStep<NormalizeOptions>(&pipeline);
  AddStep<ConvBnOptions>(&pipeline);
  AddStep<FusionOptions>(&pipeline);
  AddStep<VolumesOptions>(&pipeline);
  AddStep<EqualizationOptions>(&pipeline);
  AddStep<QuantizeOptions>(&pipeline);
  AddStep<QuantLiftOptions>(&pipeline);
  AddStep<LowerOptions>(&pipeline);
  AddStep<Int8FusionOptions>(&pipeline);
  AddStep<CleanupOptions>(&pipeline);
  return pipeline;
}

absl::StatusOr<Model> Compile(const Model& model, std::map<std::string, Tensor> samples,
                              const CompileOptions& options) {
  RETURN_IF_ERROR(CheckThreads(options.threads));
  const Model::State& state = model.state();
  ASSIGN_OR_RETURN(std::vector<Tensor> inputs,
                   compiler::SortInputs(std::move(samples), state.network.names.inputs, *state.network.graph));
  runtime::ThreadPool pool(options.threads);
  const compiler::TensorSamples data(std::make_shared<const std::vector<Tensor>>(std::move(inputs)), &pool);
  compiler::CalibrationOptions calibration;
  calibration.samples = data.size();
  calibration.max_memory_bytes = options.max_memory_bytes;
  compiler::CalibrationRunner runner(data, &pool, calibration);
  passes::PassEnvironment environment;
  environment.runner = &runner;
  environment.kernels = &state.library.kernels;
  environment.peaks = options.peaks;
  environment.cache_folder = options.cache_folder;
  compiler::ProfilerOptions profiling;
  profiling.cache_folder = options.cache_folder;
  profiling.replay_folder = options.replay_folder;
  if (options.tune_seconds > 0) profiling.seconds = options.tune_seconds;
  compiler::Profiler profiler(state.library.kernels, profiling);
  environment.profiler = &profiler;
  compiler::LoadedGraph compiled{state.network.graph->Clone(), state.network.names, state.network.warnings};
  ASSIGN_OR_RETURN(compiled.reports,
                   passes::RunPipeline(options.pipeline, state.library.passes, environment, *compiled.graph));
  return Model(std::make_shared<const Model::State>(state.library, std::move(compiled)));
}

struct Session::Parts {
  std::unique_ptr<runtime::ThreadPool> own_pool;
  std::optional<Model> model;  // What engines are still to be made of: for any batch.
  std::optional<EngineCache> engines;
  int64_t batch = 0;                    // 0: any.
  std::vector<TensorType> input_types;  // Of a run.
  std::vector<Tensor> unasked;          // By output; empty where the caller has always asked for it.
  std::vector<const Tensor*> input_pointers;
  std::vector<Tensor*> output_pointers;
};

void Session::Delete::operator()(Parts* parts) const { delete parts; }

int64_t Session::activation_bytes() const { return parts_->engines->arena_bytes(); }
int64_t Session::weight_bytes() const { return parts_->engines->weight_bytes(); }

namespace {

// Whether each of the `named` is one of `values`.
template <typename Named>
absl::Status CheckNames(const Named& named, const std::vector<Value>& values, absl::string_view what) {
  for (const auto& [name, tensor] : named) {
    if (std::any_of(values.begin(), values.end(), [&name = name](const Value& value) { return value.name == name; })) {
      continue;
    }
    const auto append = [](std::string* out, const Value& value) { absl::StrAppend(out, "\"", value.name, "\""); };
    return absl::NotFoundError(
        absl::StrCat("found the ", what, " \"", name, "\", wanted one of ", absl::StrJoin(values, ", ", append)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<Value>> Session::OutputsAt(int64_t batch) {
  if (batch < 1 || (parts_->batch != 0 && parts_->batch != batch)) {
    return UsageError(absl::StrCat("batch is ", batch, ", wanted ",
                                   parts_->batch == 0 ? "at least 1" : absl::StrCat(parts_->batch, ", the session's")));
  }
  ASSIGN_OR_RETURN(const Engine* engine, parts_->engines->Get(batch));
  std::vector<Value> outputs = outputs_;
  for (size_t i = 0; i < outputs.size(); ++i) outputs[i].type = engine->output_types()[i];
  return outputs;
}

absl::Status Session::Run(const std::map<std::string, Input>& inputs, const std::map<std::string, Tensor*>& outputs) {
  RETURN_IF_ERROR(CheckNames(inputs, inputs_, "input"));
  RETURN_IF_ERROR(CheckNames(outputs, outputs_, "output"));
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const auto& [name, type] = inputs_[i];
    const auto it = inputs.find(name);
    if (it == inputs.end()) {
      return absl::InvalidArgumentError(absl::StrCat("found no input \"", name, "\", wanted ", ToString(type)));
    }
    parts_->input_pointers[i] = it->second.tensor;
  }
  const Tensor& first = *parts_->input_pointers[0];
  const bool any = parts_->batch == 0;
  const int64_t batch = !any ? parts_->batch : first.rank() == 0 ? 1 : std::max<int64_t>(1, first.dim(0));
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const TensorType& found = parts_->input_pointers[i]->type();
    TensorType& wanted = parts_->input_types[i];
    wanted.shape[0] = batch;
    if (found == wanted) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("input \"", inputs_[i].name, "\" is ", ToString(found), ", wanted ", ToString(wanted),
                     !any     ? ""
                     : i == 0 ? ", or another batch in dimension 0"
                              : absl::StrCat(", with the batch of input \"", inputs_[0].name, "\"")));
  }
  // Before any output is touched.
  for (const auto& [name, output] : outputs) {
    const std::vector<const Tensor*>& read = parts_->input_pointers;
    if (output == nullptr || std::find(read.begin(), read.end(), output) != read.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "output \"", name, "\" is ", output == nullptr ? "null" : "also an input", ", wanted a tensor of its own"));
    }
  }
  ASSIGN_OR_RETURN(Engine * engine, parts_->engines->Get(batch));
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const TensorType& type = engine->output_types()[i];
    const auto it = outputs.find(outputs_[i].name);
    Tensor* output = it == outputs.end() ? &parts_->unasked[i] : it->second;
    if (output->type() != type) *output = Tensor(type);
    parts_->output_pointers[i] = output;
  }
  return engine->RunInto(parts_->input_pointers, parts_->output_pointers);
}

namespace {

absl::StatusOr<std::unique_ptr<Engine>> MakeEngine(const Model::State& state, const SessionOptions& options,
                                                   int64_t batch, runtime::ThreadPool* pool) {
  const ir::Graph& graph = *state.network.graph;
  if (options.device == "cpu") {
    ASSIGN_OR_RETURN(auto program, state.programs.Get(graph, state.library,
                                                      {batch, options.isa, pool->threads(), options.max_memory_bytes}));
    return compiler::MakeEngine(std::move(program), pool);
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<ir::Graph> copy, compiler::WithBatch(graph, batch));
  compiler::EngineOptions engine_options;
  engine_options.backend = options.device;
  engine_options.cuda = options.cuda;
  engine_options.max_memory_bytes = options.max_memory_bytes;
  auto engine = compiler::MakeEngine(*copy, /*batch=*/0, state.library.kernels, pool, engine_options);
  if (!engine.ok()) return OfBatch(engine.status(), batch);
  return engine;
}

}  // namespace

absl::StatusOr<Session> Prepare(const Model& model, const SessionOptions& options) {
  RETURN_IF_ERROR(CheckThreads(options.threads));
  if (options.batch < 0) return UsageError(absl::StrCat("batch is ", options.batch, ", wanted at least 1"));
  if (options.kept_batches < 1) {
    return UsageError(absl::StrCat("kept_batches is ", options.kept_batches, ", wanted at least 1"));
  }
  if (options.max_memory_bytes < 0) {
    return UsageError(absl::StrCat("max_memory_bytes is ", options.max_memory_bytes, ", wanted at least 0"));
  }
  if (!kernels::CpuSupports(options.isa)) {
    return UsageError(absl::StrCat("this CPU does not run ", kernels::IsaName(options.isa), "; it runs ",
                                   kernels::IsaName(kernels::BestIsa())));
  }
  if (options.device != "cpu" && options.device != "reference" &&
      (options.device != "cuda" || options.cuda == nullptr)) {
    return UsageError(absl::StrCat("device \"", options.device,
                                   "\": wanted \"cpu\", \"reference\", or \"cuda\" with a ", "runtime::cuda::Backend"));
  }
  Session session;
  session.parts_.reset(new Session::Parts());
  Session::Parts& parts = *session.parts_;
  runtime::ThreadPool* pool = options.pool;
  if (pool == nullptr) {
    parts.own_pool = std::make_unique<runtime::ThreadPool>(options.threads);
    pool = parts.own_pool.get();
  }
  parts.batch = options.batch;
  parts.engines.emplace(
      [&state = model.state(), options, pool](int64_t batch) { return MakeEngine(state, options, batch, pool); },
      EngineCache::Options{options.kept_batches, options.max_memory_bytes});
  session.inputs_ = model.inputs();
  session.outputs_ = model.outputs();
  if (options.batch == 0) {
    parts.model = model;
  } else {
    ASSIGN_OR_RETURN(session.outputs_, session.OutputsAt(options.batch));
    for (Value& input : session.inputs_) input.type.shape[0] = options.batch;
  }
  for (const Value& input : session.inputs_) parts.input_types.push_back(input.type);
  parts.input_pointers.resize(session.inputs_.size());
  parts.output_pointers.resize(session.outputs_.size());
  parts.unasked.resize(session.outputs_.size());
  return session;
}

}  // namespace fuselage
