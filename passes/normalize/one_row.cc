#include "passes/normalize/one_row.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ir/match/in_place.h"
#include "ir/match/properties.h"

namespace fuselage::normalize {
namespace {

using ir::Node;

constexpr int64_t kHeight = 2;  // The axis.
const AttributeMap& Row() {
  static const AttributeMap& row = *new AttributeMap{{"dims", std::vector<int64_t>{kHeight}}};
  return row;
}

// x [N, C, 1, L], where `value` is it as [N, C, L]; else null.
Node* ImageOrNull(const Node& value) {
  if (!IsView(value) || value.tensor_type().rank() != 3) return nullptr;
  const Shape &row = value.tensor_type().shape, &image = value.operand(0)->tensor_type().shape;
  return image == Shape{row[0], row[1], 1, row[2]} ? value.operand(0) : nullptr;
}

// Of a window over one axis, over two.
AttributeMap OfTwoAxes(AttributeMap attributes) {
  for (auto& [name, value] : attributes) {
    if (value.kind() != AttributeKind::kInts) continue;
    const std::vector<int64_t>& of_one = value.as_ints();
    const int64_t nothing = absl::EndsWith(name, "padding") ? 0 : 1;
    value = of_one.size() == 2 ? std::vector<int64_t>{nothing, of_one[0], nothing, of_one[1]}
                               : std::vector<int64_t>{nothing, of_one[0]};
  }
  return attributes;
}

// As `node` calls its module, a weight over one axis as one over two.
NewCall CallOf(const Node& node, std::string op, bool two_axes) {
  NewCall call = CallWithoutOperands(node);
  call.op = std::move(op);
  if (!two_axes) return call;
  call.attributes = OfTwoAxes(std::move(call.attributes));
  for (auto& [name, constant] : call.parameters) {
    Shape shape = constant.tensor->shape();
    if (shape.size() >= 2) shape.insert(shape.end() - 1, 1);
    constant = Reshaped(constant, shape);
  }
  return call;
}

// `others`: operands behind x.
std::vector<NewCall> Convolution(const Node& node, std::string op, std::vector<Node*> others) {
  Node* x = node.operand(0);
  NewCall call = CallOf(node, std::move(op), /*two_axes=*/true);
  call.operands = std::move(others);
  if (Node* image = ImageOrNull(*x); image != nullptr) {
    call.operands.insert(call.operands.begin(), image);
    return {std::move(call), {"squeeze", {}, {}, Row()}};
  }
  std::vector<NewCall> calls = {{"unsqueeze", {x}, {}, Row()}, std::move(call), {"squeeze", {}, {}, Row()}};
  if (x->IsOp("dequantize") && match::ConvertsAll(*x)) {  // The convolution reads codes.
    calls[0].operands = {x->operand(0)};
    calls.insert(calls.begin() + 1, {"dequantize", {}, {}, x->attributes()});
  }
  return calls;
}

}  // namespace

std::vector<NewCall> OfOneRow(const Node& node) {
  const bool is_module = node.kind() == ir::NodeKind::kCallModule;
  const bool converts = match::ConvertsAll(node), of_integers = node.IsOp("conv_integer1d");
  if ((!match::IsF32(node) && !converts && !of_integers) || node.tensor_type().rank() != 3) return {};
  if (node.op()->module_form && !is_module) return {};
  absl::string_view stem = node.op()->name;
  const bool over_one_axis = absl::ConsumeSuffix(&stem, "1d");
  if (of_integers) {
    std::vector<Node*> others = node.operands();
    others.erase(others.begin());
    const bool one_zero_point = std::all_of(others.begin(), others.end(), [](const Node* other) {
      return other == nullptr || other->tensor_type().num_elements() == 1;
    });
    return one_zero_point ? Convolution(node, "conv_integer2d", others) : std::vector<NewCall>();
  }
  if (stem == "conv" || stem == "conv_transpose") {
    return node.num_operands() == 1 ? Convolution(node, absl::StrCat(stem, "2d"), {}) : std::vector<NewCall>();
  }
  const bool by_channel = node.IsOp("batch_norm") || node.IsOp("global_avg_pool");
  const bool elementwise = node.op()->elementwise && node.type() == node.operand(0)->type();
  if (!over_one_axis && !by_channel && !elementwise && !converts) return {};
  NewCall call = CallOf(node, over_one_axis ? absl::StrCat(stem, "2d") : node.op()->name, over_one_axis);
  for (const Node* operand : node.operands()) {
    Node* image = operand == nullptr ? nullptr : ImageOrNull(*operand);
    if (image == nullptr) return {};
    call.operands.push_back(image);
  }
  return {std::move(call), {"squeeze", {}, {}, Row()}};
}

absl::StatusOr<bool> OfImageAndConstants(const Node& node, NewNodes& nodes) {
  if (!node.is_call() || !node.op()->elementwise || !match::IsF32(node) || node.tensor_type().rank() != 3) return false;
  if (node.module() == nullptr ? match::IsInPlace(node.target()) : !node.module()->parameters.empty()) return false;
  const std::vector<Node*> values = node.operands();
  const auto view = std::find_if(values.begin(), values.end(), [&](const Node* value) {
    return value != nullptr && IsView(*value) && value->type() == node.type();
  });
  if (view == values.end()) return false;
  const Shape &shape = node.tensor_type().shape, &image = (*view)->operand(0)->tensor_type().shape;
  const bool is_row = image == Shape{shape[0], shape[1], 1, shape[2]};
  if (!is_row && image != Shape{shape[0], shape[1], shape[2], 1}) return false;
  std::vector<Node*> operands;
  bool all_views = true;
  for (Node* operand : values) {
    if (operand != nullptr && IsView(*operand) && operand->type() == node.type() &&
        operand->operand(0)->type() == (*view)->operand(0)->type()) {
      operands.push_back(operand->operand(0));
      continue;
    }
    if (operand == nullptr || operand->kind() != ir::NodeKind::kGetAttr || !match::IsF32(*operand)) return false;
    all_views = false;
    Tensor constant = *operand->graph().FindParameterOrNull(operand->target())->tensor;
    Shape with_axis = constant.shape();
    const size_t behind = is_row ? 1 : 0;  // Dimensions of it that come behind the new one.
    if (with_axis.size() > behind) with_axis.insert(with_axis.end() - static_cast<int64_t>(behind), 1);
    constant.set_type({DType::kF32, std::move(with_axis), std::nullopt, Layout::kRowMajor});
    ASSIGN_OR_RETURN(operands.emplace_back(), nodes.Constant(std::move(constant), "of_image"));
  }
  if (is_row && all_views) return false;  // OfOneRow's, which keeps the module.
  ASSIGN_OR_RETURN(Node * call, nodes.Add(node.op()->name, std::move(operands), node.attributes()));
  const std::vector<int64_t> axis = {is_row ? kHeight : kHeight + 1};
  RETURN_IF_ERROR(nodes.Add("squeeze", {call}, {{"dims", axis}}).status());
  return true;
}

Node* ViewedAndBackOrNull(const Node& node) {
  if (!IsView(node) || !IsView(*node.operand(0))) return nullptr;
  Node* x = node.operand(0)->operand(0);
  return x->type() == node.type() ? x : nullptr;
}

}  // namespace fuselage::normalize
