#include "harness/measure/engine.h"

#include "absl/strings/str_cat.h"
#include "interpreter/interpreter.h"
#include "ir/base/check.h"
#include "ir/base/status.h"
#include "runtime/cuda/cuda_executable.h"

namespace fuselage::harness {
namespace {

class ExecutableEngine : public Engine {
 public:
  // `cuda`: the executable, where it is one of CUDA's.
  explicit ExecutableEngine(std::unique_ptr<runtime::Executable> executable,
                            const runtime::cuda::CudaExecutable* cuda = nullptr)
      : executable_(std::move(executable)), cuda_(cuda) {
    for (const TensorType& type : executable_->output_types()) outputs_.emplace_back(type);
    for (Tensor& output : outputs_) pointers_.push_back(&output);
  }

  absl::StatusOr<const std::vector<Tensor>*> Run(absl::Span<const Tensor> inputs) override {
    inputs_.clear();
    for (const Tensor& input : inputs) inputs_.push_back(&input);
    RETURN_IF_ERROR(executable_->Run(inputs_, absl::MakeSpan(pointers_)));
    return &outputs_;
  }

  const std::vector<TensorType>& input_types() const override { return executable_->input_types(); }
  int64_t arena_bytes() const override { return executable_->arena_bytes(); }
  int64_t weight_bytes() const override { return executable_->weight_bytes(); }
  runtime::Executable* executable() override { return executable_.get(); }
  std::vector<std::string> ReferenceOps() const override {
    std::vector<std::string> ops;
    for (const runtime::StepProfile& step : executable_->profile()) {
      if (step.variant == "reference") ops.push_back(step.op);
    }
    return ops;
  }
  std::optional<double> device_ms() const override {
    return cuda_ == nullptr ? std::nullopt : std::optional<double>(1e3 * cuda_->device_seconds());
  }

 private:
  std::unique_ptr<runtime::Executable> executable_;
  const runtime::cuda::CudaExecutable* const cuda_;
  std::vector<Tensor> outputs_;
  std::vector<Tensor*> pointers_;
  std::vector<const Tensor*> inputs_;
};

class ReferenceEngine : public Engine {
 public:
  explicit ReferenceEngine(std::unique_ptr<ir::Graph> graph) : graph_(std::move(graph)) {
    for (const ir::Node* placeholder : graph_->placeholders()) input_types_.push_back(placeholder->tensor_type());
  }

  absl::StatusOr<const std::vector<Tensor>*> Run(absl::Span<const Tensor> inputs) override {
    ASSIGN_OR_RETURN(outputs_, interpreter::Run(*graph_, inputs));
    return &outputs_;
  }

  const std::vector<TensorType>& input_types() const override { return input_types_; }
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
  std::vector<TensorType> input_types_;
  std::vector<Tensor> outputs_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> MakeEngine(const ir::Graph& graph, int64_t batch,
                                                   const kernels::KernelRegistry& kernels, runtime::ThreadPool* pool,
                                                   const EngineOptions& options) {
  ASSIGN_OR_RETURN(const int64_t own_batch, BatchOf(graph));
  std::unique_ptr<ir::Graph> clone = graph.Clone();
  if (batch > 0 && own_batch != batch) {
    RETURN_IF_ERROR(Annotate(clone->SetBatch(batch), absl::StrCat("with a batch of ", batch)));
  }
  if (options.backend == "reference") return std::make_unique<ReferenceEngine>(std::move(clone));
  if (options.backend == "cuda") {
    FUSELAGE_CHECK(options.cuda != nullptr);
    ASSIGN_OR_RETURN(auto executable,
                     runtime::cuda::CudaExecutable::Create(*clone, options.cuda->kernels(), &options.cuda->device(),
                                                           {options.max_memory_bytes}));
    const runtime::cuda::CudaExecutable* cuda = executable.get();
    return std::make_unique<ExecutableEngine>(std::move(executable), cuda);
  }
  runtime::ExecutableOptions executable_options;
  executable_options.isa = options.isa;
  executable_options.max_memory_bytes = options.max_memory_bytes;
  ASSIGN_OR_RETURN(auto executable, runtime::Executable::Create(*clone, kernels, pool, executable_options));
  return std::make_unique<ExecutableEngine>(std::move(executable));
}

absl::StatusOr<int64_t> BatchOf(const ir::Graph& graph) {
  const std::vector<ir::Node*> placeholders = graph.placeholders();
  if (placeholders.empty()) return absl::InvalidArgumentError("the model has no inputs, want at least one");
  const Shape& first = placeholders[0]->tensor_type().shape;
  for (const ir::Node* placeholder : placeholders) {
    const Shape& shape = placeholder->tensor_type().shape;
    if (shape.empty() || shape[0] != first[0]) {
      return absl::InvalidArgumentError(
          absl::StrCat("input %", placeholder->name(), " is ", ToString(placeholder->tensor_type()), " and input %",
                       placeholders[0]->name(), " ", ToString(placeholders[0]->tensor_type()),
                       ", want one batch size in dimension 0"));
    }
  }
  return first[0];
}

absl::StatusOr<TensorType> ImageInputOf(const ir::Graph& graph) {
  const std::vector<ir::Node*> placeholders = graph.placeholders();
  if (placeholders.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("the model has ", placeholders.size(), " inputs, want one image batch"));
  }
  const TensorType& type = placeholders[0]->tensor_type();
  if (type.dtype != DType::kF32 || type.rank() != 4) {
    return absl::InvalidArgumentError(absl::StrCat("input %", placeholders[0]->name(), " is ", ToString(type),
                                                   ", want f32 [batch, channels, height, width]"));
  }
  return type;
}

}  // namespace fuselage::harness
