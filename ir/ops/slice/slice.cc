#include "ir/ops/slice/slice.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"

namespace fuselage::ops::slice {
namespace {

// --- slice.

struct Range {
  int64_t start = 0, step = 1, count = 0;
};

Range Clamped(int64_t start, int64_t end, int64_t step, int64_t dim) {
  const auto position = [dim](int64_t p, int64_t low, int64_t high) {
    return std::clamp(p < 0 ? p + dim : p, low, high);
  };
  Range range{0, step, 0};
  int64_t distance;
  if (step > 0) {
    range.start = position(start, 0, dim);
    distance = position(end, 0, dim) - range.start;
  } else {
    range.start = position(start, -1, dim - 1);
    distance = range.start - position(end, -1, dim - 1);
    step = step == INT64_MIN ? INT64_MAX : -step;
  }
  if (distance > 0) range.count = (distance - 1) / step + 1;
  if (range.count <= 1) range.step = 1;  // Unused, and possibly huge.
  return range;
}

// One range for each axis of the input.
absl::StatusOr<std::vector<Range>> RangesOf(const ir::OpCall& call, const Shape& input) {
  const std::vector<int64_t>& starts = call.GetInts("starts");
  const std::vector<int64_t>& ends = call.GetInts("ends");
  const std::vector<int64_t>& steps = call.GetInts("steps");
  const int rank = static_cast<int>(input.size());
  ASSIGN_OR_RETURN(std::vector<int> axes, AxesOf(call, "axes", rank));
  if (axes.empty()) {
    for (int axis = 0; axis < static_cast<int>(starts.size()); ++axis) axes.push_back(axis);
  }
  const std::string wanted = absl::StrCat(axes.size(), " values, one an axis");
  if (static_cast<int>(axes.size()) > rank) {
    return AttributeError(call, "starts", absl::StrCat("at most ", rank, " values, the input's rank"));
  }
  if (starts.size() != axes.size()) return AttributeError(call, "starts", wanted);
  if (ends.size() != axes.size()) return AttributeError(call, "ends", wanted);
  if (!steps.empty() && steps.size() != axes.size()) return AttributeError(call, "steps", wanted);
  std::vector<Range> ranges;
  for (int64_t dim : input) ranges.push_back({0, 1, dim});
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t step = steps.empty() ? 1 : steps[i];
    if (step == 0) return AttributeError(call, "steps", "no 0");
    ranges[axes[i]] = Clamped(starts[i], ends[i], step, input[axes[i]]);
  }
  return ranges;
}

absl::StatusOr<ir::Type> InferSlice(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckPerTensor(call, 0));
  ASSIGN_OR_RETURN(const std::vector<Range> ranges, RangesOf(call, call.tensor(0).shape));
  Shape shape;
  for (const Range& range : ranges) shape.push_back(range.count);
  return ResultType(call.tensor(0).dtype, std::move(shape), call.tensor(0).quant);
}

absl::StatusOr<std::vector<Tensor>> EvaluateSlice(const ir::EvaluateCall& call) {
  ASSIGN_OR_RETURN(const std::vector<Range> ranges, RangesOf(call, call.tensor(0).shape()));
  if (call.result().num_elements() == 0) return One(Tensor(call.result()));
  std::vector<int64_t> strides = RowMajorStrides(call.tensor(0).shape());
  int64_t start = 0;
  for (size_t axis = 0; axis < ranges.size(); ++axis) {
    start += ranges[axis].start * strides[axis];
    strides[axis] *= ranges[axis].step;
  }
  return One(Gather(call.tensor(0), call.result(), strides, start));
}

// --- split.

absl::StatusOr<ir::Type> InferSplit(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckPerTensor(call, 0));
  const TensorType& input = call.tensor(0);
  ASSIGN_OR_RETURN(const int axis, AxisOf(call, "dim", input.rank()));
  int64_t left = input.shape[axis];
  std::vector<TensorType> parts;
  for (int64_t size : call.GetInts("sizes")) {
    if (size < 0 || size > left) {
      left = -1;
      break;
    }
    left -= size;
    parts.push_back(input);
    parts.back().shape[axis] = size;
  }
  if (left != 0 || parts.empty()) {
    return AttributeError(
        call, "sizes",
        absl::StrCat("sizes >= 0 that sum to ", input.shape[axis], ", axis ", axis, " of ", ToString(input)));
  }
  return ir::Type::Tuple(std::move(parts));
}

absl::StatusOr<std::vector<Tensor>> EvaluateSplit(const ir::EvaluateCall& call) {
  const Tensor& input = call.tensor(0);
  ASSIGN_OR_RETURN(const int axis, AxisOf(call, "dim", input.rank()));
  const std::vector<int64_t> strides = RowMajorStrides(input.shape());
  std::vector<Tensor> parts;
  int64_t start = 0;
  for (const TensorType& part : call.result_type->elements()) {
    parts.push_back(Gather(input, part, strides, start));
    start += part.shape[axis] * strides[axis];
  }
  return parts;
}

// --- getitem.

absl::StatusOr<ir::Type> InferGetItem(const ir::InferCall& call) {
  if (!call.operands[0]->is_tuple()) return OperandError(call, 0, "wanted a tuple");
  const std::vector<TensorType>& elements = call.operands[0]->elements();
  const int64_t size = static_cast<int64_t>(elements.size()), index = call.GetInt("index");
  if (index < -size || index >= size) {
    return AttributeError(call, "index",
                          absl::StrCat("[", -size, ", ", size, "), the tuple being ", ir::ToString(*call.operands[0])));
  }
  return ir::Type(elements[index < 0 ? index + size : index]);
}

absl::StatusOr<std::vector<Tensor>> EvaluateGetItem(const ir::EvaluateCall& call) {
  const std::vector<Tensor>& tuple = *call.operands[0];
  const int64_t index = call.GetInt("index");
  return One(tuple[index < 0 ? index + static_cast<int64_t>(tuple.size()) : index]);
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  const std::vector<int64_t> none;
  ir::OpSchema slice;
  slice.name = "slice";
  slice.operands = {{"input"}};
  slice.attributes = {{"starts", AttributeKind::kInts, std::nullopt},
                      {"ends", AttributeKind::kInts, std::nullopt},
                      {"axes", AttributeKind::kInts, none},
                      {"steps", AttributeKind::kInts, none}};
  slice.view = ir::View::kSelects;
  slice.infer = InferSlice;
  slice.evaluate = EvaluateSlice;
  registry.Register(std::move(slice));

  ir::OpSchema split;
  split.name = "split";
  split.aliases = {"torch.split"};
  split.operands = {{"input"}};
  split.attributes = {{"sizes", AttributeKind::kInts, std::nullopt}, {"dim", AttributeKind::kInt, 0}};
  split.infer = InferSplit;
  split.evaluate = EvaluateSplit;
  registry.Register(std::move(split));

  ir::OpSchema getitem;
  getitem.name = "getitem";
  getitem.aliases = {"operator.getitem"};
  getitem.operands = {{"tuple"}};
  getitem.attributes = {{"index", AttributeKind::kInt, std::nullopt}};
  getitem.takes_tuple = true;
  getitem.infer = InferGetItem;
  getitem.evaluate = EvaluateGetItem;
  registry.Register(std::move(getitem));
}

}  // namespace fuselage::ops::slice
