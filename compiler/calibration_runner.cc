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

// Where a requested value is.
struct Slot {
  bool is_input;
  int index;
};

// What one run reads and writes.
struct Tensors {
  Tensors(const runtime::Executable& executable, const std::vector<Slot>& slots) {
    for (const TensorType& type : executable.input_types()) inputs.emplace_back(type);
    for (const TensorType& type : executable.output_types()) outputs.emplace_back(type);
    for (const Tensor& input : inputs) input_pointers.push_back(&input);
    for (Tensor& output : outputs) output_pointers.push_back(&output);
    for (const Slot& slot : slots) values.push_back(&(slot.is_input ? inputs : outputs)[slot.index]);
  }

  std::vector<Tensor> inputs, outputs;
  std::vector<const Tensor*> input_pointers;
  std::vector<Tensor*> output_pointers;
  std::vector<const Tensor*> values;  // One for each requested node, in their order.
};

// One image at a time on one thread. While a run fills one of its two sets of tensors, the other is visited.
struct Lane {
  runtime::ThreadPool pool{1};
  std::unique_ptr<runtime::Executable> executable;
  std::vector<Tensors> sets;
  absl::Status status;
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
    lane.sets.reserve(2);  // What points into them stays.
    for (int set = 0; set < 2; ++set) lane.sets.emplace_back(*lane.executable, slots);
  }

  // Each turn runs so many samples, and visits those of the turn before.
  const int num_lanes = static_cast<int>(lanes.size());
  for (int first = begin, set = 0, before = 0; first < end || before > 0; set = 1 - set) {
    const int count = std::min(num_lanes, end - first);
    for (int i = 0; i < count; ++i) {
      std::vector<Tensor>& inputs = lanes[i].sets[set].inputs;
      for (size_t input = 0; input < inputs.size(); ++input) {
        RETURN_IF_ERROR(samples_.Fill(first + i, first + i + 1, &inputs[input], static_cast<int>(input)));
      }
    }
    absl::Status visited;
    const auto visit_those_before = [&]() -> absl::Status {
      for (int i = 0; i < before; ++i) RETURN_IF_ERROR(visit(first - before + i, lanes[i].sets[1 - set].values));
      return absl::OkStatus();
    };
    pool_->For(count + 1, [&](int task, int) {
      if (task == 0) {
        visited = visit_those_before();
        return;
      }
      Lane& lane = lanes[task - 1];
      Tensors& tensors = lane.sets[set];
      lane.status = lane.executable->Run(tensors.input_pointers, absl::MakeSpan(tensors.output_pointers));
    });
    RETURN_IF_ERROR(visited);
    for (int i = 0; i < count; ++i) RETURN_IF_ERROR(lanes[i].status);
    if (options_.progress && before > 0) options_.progress(first);
    first += count;
    before = count;
  }
  return absl::OkStatus();
}

}  // namespace fuselage::compiler
