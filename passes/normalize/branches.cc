#include "passes/normalize/branches.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/status/statusor.h"
#include "ir/match/properties.h"

namespace fuselage::normalize {
namespace {

using ir::Node;

constexpr int64_t kMostBranches = 4;

const Shape& ShapeOf(const Node& value) { return value.tensor_type().shape; }

// x, where `value` is it with its axis divided into [axis, axis + 1]; else null.
Node* JoinedOrNull(const Node& value, int axis) {
  if (!IsView(value) || value.tensor_type().num_elements() == 0) return nullptr;
  Shape joined = ShapeOf(value);
  if (axis + 1 >= static_cast<int>(joined.size()) || joined[axis] < 2) return nullptr;
  joined[axis] *= joined[axis + 1];
  joined.erase(joined.begin() + axis + 1);
  return ShapeOf(*value.operand(0)) == joined ? value.operand(0) : nullptr;
}

// The one axis along which `node` sums; -1: it is another number of them.
int SummedAxis(const Node& node) {
  const std::vector<int64_t>& dims = node.attribute("dims").as_ints();
  if (dims.size() != 1) return -1;
  return NormalizeAxis(dims[0], node.operand(0)->tensor_type().rank()).value_or(-1);
}

NewCall ViewAs(Shape shape) {
  if (shape.size() > 1) shape[0] = 0;  // As it is.
  return {"reshape", {}, {}, {{"shape", std::vector<int64_t>(shape.begin(), shape.end())}}};
}

NewCall SliceOf(Node* x, int axis, int64_t start, int64_t end) {
  const auto one = [](int64_t value) { return std::vector<int64_t>{value}; };
  return {"slice", {x}, {}, {{"axes", one(axis)}, {"ends", one(end)}, {"starts", one(start)}}};
}

std::vector<NewCall> Stack(const Node& node) {
  const absl::StatusOr<int> axis = NormalizeAxis(node.attribute("dim").as_int(), node.tensor_type().rank());
  if (!axis.ok() || *axis == 0 || *axis + 1 >= node.tensor_type().rank() || node.num_operands() < 2) return {};
  NewCall cat{"cat", {}, {}, {{"dim", int64_t{*axis}}}};
  for (const Node* operand : node.operands()) {
    if (!operand->is_call() || operand->op()->view != ir::View::kSameOrder) return {};
    Shape branch = ShapeOf(*operand);
    if (branch[*axis] != 1 || operand->tensor_type().num_elements() == 0) return {};
    branch.erase(branch.begin() + *axis);
    if (ShapeOf(*operand->operand(0)) != branch) return {};
    cat.operands.push_back(operand->operand(0));
  }
  return {std::move(cat), ViewAs(ShapeOf(node))};
}

bool HasAxes(const Node& value, const Node& like, int axis) {
  const Shape &found = ShapeOf(value), &wanted = ShapeOf(like);
  return found.size() == wanted.size() &&
         std::equal(found.begin() + axis, found.begin() + axis + 2, wanted.begin() + axis);
}

std::vector<NewCall> Elementwise(const Node& node) {
  Node *a = node.operand(0), *b = node.operand(1);
  for (int axis = 1; axis + 1 < node.tensor_type().rank(); ++axis) {
    if (!HasAxes(*a, node, axis) || !HasAxes(*b, node, axis)) continue;
    Node *x = JoinedOrNull(*a, axis), *y = JoinedOrNull(*b, axis);
    if (x != nullptr && y != nullptr) return {{node.op()->name, {x, y}, {}, node.attributes()}, ViewAs(ShapeOf(node))};
    Node* gates = x == nullptr ? a : b;
    if (!node.IsOp("mul") || (x == nullptr && y == nullptr) || !gates->is_call()) continue;
    AttributeMap joined = {{"start_dim", int64_t{axis}}, {"end_dim", int64_t{axis} + 1}};
    return {{"flatten", {gates}, {}, std::move(joined)},
            {"mul", {x == nullptr ? y : x}, {}, node.attributes()},
            ViewAs(ShapeOf(node))};
  }
  return {};
}

}  // namespace

std::vector<NewCall> OfBranches(const Node& node) {
  if (!node.type().is_tensor() || !match::IsF32(node)) return {};
  if (node.IsOp("cat")) return Stack(node);
  const bool binary = node.op()->elementwise && node.num_operands() == 2 && node.operand(1) != nullptr;
  return binary ? Elementwise(node) : std::vector<NewCall>();
}

std::vector<NewCall> SumOfStack(const Node& node) {
  if (!node.IsOp("sum") || !match::IsF32(node)) return {};
  const Node& cat = *node.operand(0);
  const int axis = SummedAxis(node);
  if (axis < 0 || !cat.is_call() || !cat.IsOp("cat") || cat.num_operands() < 2) return {};
  if (NormalizeAxis(cat.attribute("dim").as_int(), cat.tensor_type().rank()).value_or(-1) != axis) return {};
  std::vector<NewCall> adds;
  for (const Node* part : cat.operands()) {
    Shape one = ShapeOf(*part);
    if (!IsView(*part) || one[axis] != 1) return {};
    one.erase(one.begin() + axis);
    if (ShapeOf(*part->operand(0)) != one) return {};
    if (adds.empty() || adds.back().operands.size() == (adds.size() == 1 ? 2 : 1)) adds.push_back({"add", {}, {}, {}});
    adds.back().operands.push_back(part->operand(0));
  }
  if (node.attribute("keepdim").as_bool())
    adds.push_back({"unsqueeze", {}, {}, {{"dims", std::vector<int64_t>{axis}}}});
  return adds;
}

std::vector<NewCall> SummedBranches(const Node& node) {
  if (!node.IsOp("sum") || !match::IsF32(node)) return {};
  const int axis = SummedAxis(node);
  Node* x = axis < 0 ? nullptr : JoinedOrNull(*node.operand(0), axis);
  if (x == nullptr) return {};
  const int64_t branches = ShapeOf(*node.operand(0))[axis], channels = ShapeOf(*x)[axis] / branches;
  if (branches > kMostBranches) return {};
  std::vector<NewCall> slices;
  for (int64_t i = 0; i < branches; ++i) slices.push_back(SliceOf(x, axis, i * channels, (i + 1) * channels));
  return slices;
}

Node* SlicedOperandOrNull(const Node& node) {
  if (!node.IsOp("slice") || !node.operand(0)->is_call() || !node.operand(0)->IsOp("cat")) return nullptr;
  const Node& cat = *node.operand(0);
  const int rank = node.tensor_type().rank();
  const std::vector<int64_t>&axes = node.attribute("axes").as_ints(), &steps = node.attribute("steps").as_ints();
  if (axes.size() != 1 || (!steps.empty() && steps[0] != 1)) return nullptr;
  const absl::StatusOr<int> sliced = NormalizeAxis(axes[0], rank);
  const absl::StatusOr<int> joined = NormalizeAxis(cat.attribute("dim").as_int(), rank);
  if (!sliced.ok() || !joined.ok() || *sliced != *joined || *sliced == 0) return nullptr;
  int64_t start = node.attribute("starts").as_ints()[0];
  for (Node* operand : cat.operands()) {
    if (start == 0 && operand->type() == node.type()) return operand;
    start -= ShapeOf(*operand)[*joined];
  }
  return nullptr;
}

std::vector<NewCall> PartOfSplit(const Node& node) {
  const Node& split = *node.operand(0);
  if (!split.is_call() || !split.IsOp("split")) return {};
  const std::vector<int64_t>& sizes = split.attribute("sizes").as_ints();
  const absl::StatusOr<int> axis = NormalizeAxis(split.attribute("dim").as_int(), node.tensor_type().rank());
  const absl::StatusOr<int> part = NormalizeAxis(node.attribute("index").as_int(), static_cast<int>(sizes.size()));
  if (!axis.ok() || !part.ok() || *axis == 0) return {};
  const int64_t start = std::accumulate(sizes.begin(), sizes.begin() + *part, int64_t{0});
  return {SliceOf(split.operand(0), *axis, start, start + sizes[*part])};
}

}  // namespace fuselage::normalize
