#include "harness/measure/calibration_runner.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "harness/base/exit_code.h"
#include "ir/base/status.h"
#include "kernels/register_all_reproducible.h"
#include "kernels/reproducible/reproducible.h"
#include "runtime/executable.h"

namespace fuselage::harness {
namespace {

// Each lane has weights and an arena of its own, in which no tapped value may be overwritten.
constexpr int kMaxLanes = 8;

// One image at a time on one thread.
struct Lane {
  runtime::ThreadPool pool{1};
  std::unique_ptr<runtime::Executable> executable;
  Tensor input;
  std::vector<Tensor> outputs;
  std::vector<Tensor*> output_pointers;
  std::vector<const Tensor*> values;  // Of the requested nodes, in their order.
  absl::Status status;
};

// The graph with the requested nodes as its outputs; `slots[i]` is the output of nodes[i], or -1 for the placeholder.
absl::StatusOr<std::unique_ptr<ir::Graph>> Tapped(const ir::Graph& graph, absl::Span<const ir::Node* const> nodes,
                                                  std::vector<int>* slots) {
  std::unique_ptr<ir::Graph> clone = graph.Clone();
  for (const ir::Node* node : nodes) {
    ir::Node* copy = clone->FindNodeOrNull(node->name());
    if (copy == nullptr || !copy->type().is_tensor() || copy->tensor_type().dtype != DType::kF32) {
      return absl::InternalError(absl::StrCat("%", node->name(), " cannot be calibrated: it is not an f32 tensor"));
    }
    if (copy->kind() == ir::NodeKind::kPlaceholder) {
      slots->push_back(-1);
      continue;
    }
    slots->push_back(clone->output()->num_operands());
    clone->AppendOutput(copy);
  }
  return clone;
}

}  // namespace

CalibrationRunner::CalibrationRunner(const Samples& samples, runtime::ThreadPool* pool, CalibrationOptions options)
    : samples_(samples), pool_(pool), options_(std::move(options)) {
  kernels::RegisterAllReproducible(kernels_);
}

int CalibrationRunner::NumImages() const {
  return static_cast<int>(std::min<int64_t>(options_.images, samples_.size()));
}

std::string CalibrationRunner::DataKey() const {
  const std::string key = samples_.Key(NumImages());
  if (key.empty()) return "";  // Calibration will say why.
  return absl::StrCat(NumImages(), " ", key, ", arithmetic ", reproducible::kArithmeticVersion);
}

absl::StatusOr<std::unique_ptr<runtime::Executable>> CalibrationRunner::MakeExecutable(
    const ir::Graph& graph, runtime::ThreadPool* pool) const {
  runtime::ExecutableOptions options;
  options.isa = options_.isa;
  options.max_memory_bytes = options_.max_memory_bytes;
  auto executable =
      runtime::Executable::Create(graph, options_.kernels == nullptr ? kernels_ : *options_.kernels, pool, options);
  // An op that runs, but not with the same bits everywhere.
  if (absl::IsFailedPrecondition(executable.status())) {
    return absl::UnimplementedError(absl::StrCat("calibration: ", executable.status().message()));
  }
  return executable;
}

absl::Status CalibrationRunner::ForEachSample(
    const ir::Graph& graph, absl::Span<const ir::Node* const> nodes,
    const std::function<absl::Status(int sample, absl::Span<const Tensor* const> values)>& visit) {
  const int images = NumImages();
  if (images == 0) {
    return UsageError(
        "the calibration set is empty: a pipeline that calibrates wants calibration.images of at least 1");
  }
  std::vector<int> slots;
  ASSIGN_OR_RETURN(const std::unique_ptr<ir::Graph> tapped, Tapped(graph, nodes, &slots));
  std::vector<Lane> lanes(std::min({pool_->threads(), images, kMaxLanes}));
  for (Lane& lane : lanes) {
    ASSIGN_OR_RETURN(lane.executable, MakeExecutable(*tapped, &lane.pool));
    lane.input = Tensor(lane.executable->input_types()[0]);
    for (const TensorType& type : lane.executable->output_types()) lane.outputs.emplace_back(type);
    for (Tensor& output : lane.outputs) lane.output_pointers.push_back(&output);
    for (int slot : slots) lane.values.push_back(slot < 0 ? &lane.input : &lane.outputs[slot]);
  }

  for (int first = 0; first < images; first += static_cast<int>(lanes.size())) {
    const int count = std::min<int>(lanes.size(), images - first);
    for (int i = 0; i < count; ++i) {
      RETURN_IF_ERROR(samples_.Fill(first + i, first + i + 1, &lanes[i].input));
    }
    pool_->For(count, [&](int i, int) {
      const Tensor* inputs[] = {&lanes[i].input};
      lanes[i].status = lanes[i].executable->Run(inputs, absl::MakeSpan(lanes[i].output_pointers));
    });
    for (int i = 0; i < count; ++i) {
      RETURN_IF_ERROR(lanes[i].status);
      RETURN_IF_ERROR(visit(first + i, lanes[i].values));
    }
    if (options_.progress) options_.progress(first + count);
  }
  return absl::OkStatus();
}

}  // namespace fuselage::harness
