#include "compiler/engine.h"

#include "absl/strings/str_cat.h"
#include "compiler/load.h"
#include "interpreter/interpreter.h"
#include "ir/base/check.h"
#include "ir/base/status.h"
#include "runtime/cuda/cuda_executable.h"

namespace fuselage::compiler {
namespace {

class ExecutableEngine : public Engine {
 public:
  explicit ExecutableEngine(std::unique_ptr<runtime::Executable> executable) : executable_(std::move(executable)) {}

  absl::Status RunInto(absl::Span<const Tensor* const> inputs, absl::Span<Tensor* const> outputs) override {
    return executable_->Run(inputs, outputs);
  }
  const std::vector<TensorType>& input_types() const override { return executable_->input_types(); }
  const std::vector<TensorType>& output_types() const override { return executable_->output_types(); }
  int64_t arena_bytes() const override { return executable_->arena_bytes(); }
  int64_t weight_bytes() const override { return executable_->weight_bytes(); }
  runtime::Executable* executable() override { return executable_.get(); }
  std::vector<std::string> ReferenceOps() const override {
    std::vector<std::string> ops;
    for (const runtime::StepProfile& step : executable_->profile()) {
      if (step.kind == runtime::StepKind::kReference) ops.push_back(step.op);
    }
    return ops;
  }
  std::optional<double> device_ms() const override {
    const std::optional<double> seconds = executable_->device_seconds();
    return seconds ? std::make_optional(1e3 * *seconds) : std::nullopt;
  }

 private:
  std::unique_ptr<runtime::Executable> executable_;
};

class ReferenceEngine : public Engine {
 public:
  explicit ReferenceEngine(std::unique_ptr<ir::Graph> graph) : graph_(std::move(graph)) {
    for (const ir::Node* placeholder : graph_->placeholders()) input_types_.push_back(placeholder->tensor_type());
    for (const ir::Node* output : graph_->output()->operands()) output_types_.push_back(output->tensor_type());
  }

  absl::Status RunInto(absl::Span<const Tensor* const> inputs, absl::Span<Tensor* const> outputs) override {
    std::vector<Tensor> given;
    for (const Tensor* input : inputs) given.push_back(*input);
    ASSIGN_OR_RETURN(std::vector<Tensor> found, interpreter::Run(*graph_, given));
    for (size_t i = 0; i < found.size(); ++i) *outputs[i] = std::move(found[i]);
    return absl::OkStatus();
  }
  const std::vector<TensorType>& input_types() const override { return input_types_; }
  const std::vector<TensorType>& output_types() const override { return output_types_; }
  int64_t arena_bytes() const override { return 0; }
  int64_t weight_bytes() const override {
    int64_t bytes = 0;
    for (const auto& [name, parameter] : graph_->parameters()) bytes += parameter.tensor->byte_size();
    return bytes;
  }
  runtime::Executable* executable() override { return nullptr; }
  std::vector<std::string> ReferenceOps() const override {
    std::vector<std::string> ops;
    for (const ir::Node* node : graph_->Snapshot()) {
      if (node->is_call()) ops.push_back(node->op()->name);
    }
    return ops;
  }

 private:
  std::unique_ptr<ir::Graph> graph_;
  std::vector<TensorType> input_types_, output_types_;
};

}  // namespace

absl::StatusOr<const std::vector<Tensor>*> Engine::Run(absl::Span<const Tensor> inputs) {
  if (outputs_.empty()) {
    for (const TensorType& type : output_types()) outputs_.emplace_back(type);
    for (Tensor& output : outputs_) output_pointers_.push_back(&output);
  }
  input_pointers_.clear();
  for (const Tensor& input : inputs) input_pointers_.push_back(&input);
  RETURN_IF_ERROR(RunInto(input_pointers_, output_pointers_));
  return &outputs_;
}

absl::StatusOr<std::unique_ptr<Engine>> MakeEngine(const ir::Graph& graph, int64_t batch,
                                                   const kernels::KernelRegistry& kernels, runtime::ThreadPool* pool,
                                                   const EngineOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<ir::Graph> clone, WithBatch(graph, batch));
  if (options.backend == "reference") return std::make_unique<ReferenceEngine>(std::move(clone));
  if (options.backend == "cuda") {
    FUSELAGE_CHECK(options.cuda != nullptr);
    runtime::cuda::CudaExecutableOptions executable_options;
    executable_options.max_memory_bytes = options.max_memory_bytes;
    executable_options.host = pool;
    ASSIGN_OR_RETURN(auto executable, runtime::cuda::CreateExecutable(*clone, options.cuda->kernels(),
                                                                      &options.cuda->device(), executable_options));
    return std::make_unique<ExecutableEngine>(std::move(executable));
  }
  runtime::ExecutableOptions executable_options;
  executable_options.isa = options.isa;
  executable_options.max_memory_bytes = options.max_memory_bytes;
  executable_options.weights = options.weights;
  executable_options.cache_bytes = options.cache_bytes;
  ASSIGN_OR_RETURN(auto executable, runtime::Executable::Create(*clone, kernels, pool, executable_options));
  return std::make_unique<ExecutableEngine>(std::move(executable));
}

absl::StatusOr<std::unique_ptr<Engine>> MakeEngine(std::shared_ptr<const runtime::Program> program,
                                                   runtime::ThreadPool* pool) {
  ASSIGN_OR_RETURN(auto executable, runtime::Executable::Create(std::move(program), pool));
  return std::make_unique<ExecutableEngine>(std::move(executable));
}

}  // namespace fuselage::compiler
