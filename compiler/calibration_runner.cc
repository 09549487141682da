#include "compiler/calibration_runner.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "kernels/register_all_reproducible.h"
#include "kernels/reproducible/reproducible.h"
#include "runtime/executable.h"

namespace fuselage::compiler {
namespace {

// Each lane has an arena of its own, in which no tapped value may be overwritten.
constexpr int kMaxLanes = 8;

// One image at a time on one thread.
struct Lane {
  runtime::ThreadPool pool{1};
  std::unique_ptr<runtime::Executable> executable;
  std::vector<Tensor> inputs, outputs;
  std::vector<const Tensor*> input_pointers;
  std::vector<Tensor*> output_pointers;
  std::vector<const Tensor*> values;  // One for each requested node, in their order.
  absl::Status status;
};

// Where a requested value is.
struct Slot {
  bool is_input;
  int index;
};

// The graph with the requested nodes as its outputs, but for those that are its inputs.
absl::StatusOr<std::unique_ptr<ir::Graph>> Tapped(const ir::Graph& graph, absl::Span<const ir::Node* const> nodes,
                                                  std::vector<Slot>* slots) {
  std::unique_ptr<ir::Graph> clone = graph.Clone();
  const std::vector<ir::Node*> inputs = clone->placeholders();
  for (const ir::Node* node : nodes) {
    ir::Node* copy = clone->FindNodeOrNull(node->name());
    if (copy == nullptr || !copy->type().is_tensor() || copy->tensor_type().dtype != DType::kF32) {
      return absl::InternalError(absl::StrCat("%", node->name(), " cannot be calibrated: it is not an f32 tensor"));
    }
    if (copy->kind() == ir::NodeKind::kPlaceholder) {
      slots->push_back({true, static_cast<int>(std::find(inputs.begin(), inputs.end(), copy) - inputs.begin())});
      continue;
    }
    slots->push_back({false, clone->output()->num_operands()});
    clone->AppendOutput(copy);
  }
  return clone;
}

}  // namespace

CalibrationRunner::CalibrationRunner(const Samples& samples, runtime::ThreadPool* pool, CalibrationOptions options)
    : samples_(samples), pool_(pool), options_(std::move(options)) {
  kernels::RegisterAllReproducible(kernels_);
}

int CalibrationRunner::NumSamples() const {
  return static_cast<int>(std::min({options_.samples, samples_.size(), int64_t{INT32_MAX}}));
}

std::string CalibrationRunner::DataKey() const {
  const std::string key = samples_.Key(NumSamples());
  if (key.empty()) return "";  // Calibration will say why.
  return absl::StrCat(NumSamples(), " ", key, ", arithmetic ", reproducible::kArithmeticVersion);
}

absl::StatusOr<std::shared_ptr<const runtime::Program>> CalibrationRunner::MakeProgram(const ir::Graph& graph) const {
  runtime::ExecutableOptions options;
  options.isa = options_.isa;
  options.max_memory_bytes = options_.max_memory_bytes;
  auto program = runtime::MakeProgram(graph, options_.kernels == nullptr ? kernels_ : *options_.kernels,
                                      /*threads=*/1, options);
  // An op that runs, but not with the same bits everywhere.
  if (absl::IsFailedPrecondition(program.status())) {
    return absl::UnimplementedError(absl::StrCat("calibration: ", program.status().message()));
  }
  return program;
}

absl::Status CalibrationRunner::ForEachSample(
    const ir::Graph& graph, absl::Span<const ir::Node* const> nodes,
    const std::function<absl::Status(int sample, absl::Span<const Tensor* const> values)>& visit) {
  return Run(0, NumSamples(), graph, nodes, visit);
}

absl::Status CalibrationRunner::ForEachSampleOfPart(
    int part, const ir::Graph& graph, absl::Span<const ir::Node* const> nodes,
    const std::function<absl::Status(int sample, absl::Span<const Tensor* const> values)>& visit) {
  const auto first = [&](int64_t i) { return static_cast<int>(i * NumSamples() / options_.parts); };
  return Run(first(part), first(part + 1), graph, nodes, visit);
}

absl::Status CalibrationRunner::Run(
    int begin, int end, const ir::Graph& graph, absl::Span<const ir::Node* const> nodes,
    const std::function<absl::Status(int sample, absl::Span<const Tensor* const> values)>& visit) {
  if (NumSamples() == 0) {
    return UsageError("the calibration set is empty: a pipeline that calibrates wants at least one sample");
  }
  if (begin == end) return absl::OkStatus();
  std::vector<Slot> slots;
  ASSIGN_OR_RETURN(const std::unique_ptr<ir::Graph> tapped, Tapped(graph, nodes, &slots));
  ASSIGN_OR_RETURN(const std::shared_ptr<const runtime::Program> program, MakeProgram(*tapped));
  std::vector<Lane> lanes(std::min({pool_->threads(), end - begin, kMaxLanes}));
  for (Lane& lane : lanes) {
    ASSIGN_OR_RETURN(lane.executable, runtime::Executable::Create(program, &lane.pool));
    for (const TensorType& type : lane.executable->input_types()) lane.inputs.emplace_back(type);
    for (const TensorType& type : lane.executable->output_types()) lane.outputs.emplace_back(type);
    for (const Tensor& input : lane.inputs) lane.input_pointers.push_back(&input);
    for (Tensor& output : lane.outputs) lane.output_pointers.push_back(&output);
    for (const Slot& slot : slots) lane.values.push_back(&(slot.is_input ? lane.inputs : lane.outputs)[slot.index]);
  }

  for (int first = begin; first < end; first += static_cast<int>(lanes.size())) {
    const int count = std::min<int>(lanes.size(), end - first);
    for (int i = 0; i < count; ++i) {
      for (size_t input = 0; input < lanes[i].inputs.size(); ++input) {
        RETURN_IF_ERROR(samples_.Fill(first + i, first + i + 1, &lanes[i].inputs[input], static_cast<int>(input)));
      }
    }
    pool_->For(count, [&](int i, int) {
      lanes[i].status = lanes[i].executable->Run(lanes[i].input_pointers, absl::MakeSpan(lanes[i].output_pointers));
    });
    for (int i = 0; i < count; ++i) {
      RETURN_IF_ERROR(lanes[i].status);
      RETURN_IF_ERROR(visit(first + i, lanes[i].values));
    }
    if (options_.progress) options_.progress(first + count);
  }
  return absl::OkStatus();
}

}  // namespace fuselage::compiler
