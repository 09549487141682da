#include "compiler/compiler.h"

#include <algorithm>
#include <mutex>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/artifact.h"
#include "compiler/calibration_runner.h"
#include "compiler/engine.h"
#include "compiler/profiler.h"
#include "compiler/samples.h"
#include "ir/base/status.h"
#include "passes/cleanup/cleanup.pb.h"
#include "passes/conv_bn/conv_bn.pb.h"
#include "passes/fusion/fusion.pb.h"
#include "passes/int8_fusion/int8_fusion.pb.h"
#include "passes/lower/lower.pb.h"
#include "passes/normalize/normalize.pb.h"
#include "passes/quant_lift/quant_lift.pb.h"
#include "passes/quantize/quantize.pb.h"
#include "runtime/executable.h"

namespace fuselage {
namespace {

using compiler::Engine;
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

// The compiled networks that sessions run: alive as long as one of them is. Their weights stay packed for later ones.
class Programs {
 public:
  using Key = std::tuple<int64_t, kernels::Isa, int, int64_t>;  // Batch, instruction set, threads, most memory.

  // `stored` may be null.
  explicit Programs(compiler::StoredWeights* stored) : stored_(stored) {}

  absl::StatusOr<std::shared_ptr<const runtime::Program>> Get(const ir::Graph& graph, const Library& library,
                                                              const Key& key) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::weak_ptr<const runtime::Program>& kept = programs_[key];
    if (std::shared_ptr<const runtime::Program> program = kept.lock()) return program;
    const auto& [batch, isa, threads, max_memory_bytes] = key;
    ASSIGN_OR_RETURN(const std::unique_ptr<ir::Graph> copy, compiler::WithBatch(graph, batch));
    runtime::ExecutableOptions options;
    options.isa = isa;
    options.max_memory_bytes = max_memory_bytes;
    options.weights = stored_ == nullptr ? &own_ : stored_;
    ASSIGN_OR_RETURN(std::shared_ptr<const runtime::Program> program,
                     runtime::MakeProgram(*copy, library.kernels, threads, options));
    if (stored_ != nullptr) RETURN_IF_ERROR(stored_->status());
    kept = program;
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
  std::unique_ptr<Engine> engine;
  std::vector<Tensor> unasked;  // By output; empty where the caller has always asked for it.
  std::vector<const Tensor*> input_pointers;
  std::vector<Tensor*> output_pointers;
};

void Session::Delete::operator()(Parts* parts) const { delete parts; }

int64_t Session::activation_bytes() const { return parts_->engine->arena_bytes(); }
int64_t Session::weight_bytes() const { return parts_->engine->weight_bytes(); }

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

absl::Status Session::Run(const std::map<std::string, Input>& inputs, const std::map<std::string, Tensor*>& outputs) {
  RETURN_IF_ERROR(CheckNames(inputs, inputs_, "input"));
  RETURN_IF_ERROR(CheckNames(outputs, outputs_, "output"));
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const auto& [name, type] = inputs_[i];
    const auto it = inputs.find(name);
    if (it == inputs.end()) {
      return absl::InvalidArgumentError(absl::StrCat("found no input \"", name, "\", wanted ", ToString(type)));
    }
    if (it->second.tensor->type() != type) {
      return absl::InvalidArgumentError(
          absl::StrCat("input \"", name, "\" is ", ToString(it->second.tensor->type()), ", wanted ", ToString(type)));
    }
    parts_->input_pointers[i] = it->second.tensor;
  }
  // Before any output is touched.
  for (const auto& [name, output] : outputs) {
    const std::vector<const Tensor*>& read = parts_->input_pointers;
    if (output == nullptr || std::find(read.begin(), read.end(), output) != read.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "output \"", name, "\" is ", output == nullptr ? "null" : "also an input", ", wanted a tensor of its own"));
    }
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const auto& [name, type] = outputs_[i];
    const auto it = outputs.find(name);
    Tensor* output = it == outputs.end() ? &parts_->unasked[i] : it->second;
    if (output->type() != type) *output = Tensor(type);
    parts_->output_pointers[i] = output;
  }
  return parts_->engine->RunInto(parts_->input_pointers, parts_->output_pointers);
}

absl::StatusOr<Session> Prepare(const Model& model, const SessionOptions& options) {
  RETURN_IF_ERROR(CheckThreads(options.threads));
  if (options.batch < 1) return UsageError(absl::StrCat("batch is ", options.batch, ", wanted at least 1"));
  if (!kernels::CpuSupports(options.isa)) {
    return UsageError(absl::StrCat("this CPU does not run ", kernels::IsaName(options.isa), "; it runs ",
                                   kernels::IsaName(kernels::BestIsa())));
  }
  const Model::State& state = model.state();
  Session session;
  session.parts_.reset(new Session::Parts());
  Session::Parts& parts = *session.parts_;
  runtime::ThreadPool* pool = options.pool;
  if (pool == nullptr) {
    parts.own_pool = std::make_unique<runtime::ThreadPool>(options.threads);
    pool = parts.own_pool.get();
  }
  if (options.device == "cpu") {
    ASSIGN_OR_RETURN(const auto program,
                     state.programs.Get(*state.network.graph, state.library,
                                        {options.batch, options.isa, pool->threads(), options.max_memory_bytes}));
    ASSIGN_OR_RETURN(parts.engine, compiler::MakeEngine(program, pool));
  } else if (options.device == "reference" || (options.device == "cuda" && options.cuda != nullptr)) {
    compiler::EngineOptions engine;
    engine.backend = options.device;
    engine.cuda = options.cuda;
    engine.max_memory_bytes = options.max_memory_bytes;
    ASSIGN_OR_RETURN(parts.engine,
                     compiler::MakeEngine(*state.network.graph, options.batch, state.library.kernels, pool, engine));
  } else {
    return UsageError(absl::StrCat("device \"", options.device,
                                   "\": wanted \"cpu\", \"reference\", or \"cuda\" with a ", "runtime::cuda::Backend"));
  }
  session.inputs_ = ValuesOf(state.network.names.inputs, parts.engine->input_types());
  session.outputs_ = ValuesOf(state.network.names.outputs, parts.engine->output_types());
  parts.input_pointers.resize(session.inputs_.size());
  parts.output_pointers.resize(session.outputs_.size());
  parts.unasked.resize(session.outputs_.size());
  return session;
}

}  // namespace fuselage
