#include "passes/normalize/groups.h"

#include <algorithm>

#include "ir/match/properties.h"

namespace fuselage::normalize {
namespace {

using ir::Node;

// Multiplies by ones, if at all, and adds zeros.
bool HasNoParameters(const Node& norm) {
  for (const ir::Argument& argument : norm.arguments()) {
    if (!argument.spec->parameter || argument.absent()) continue;
    if (argument.parameter == nullptr || argument.parameter->tensor->dtype() != DType::kF32) return false;
    const float none = argument.spec->name == "weight" ? 1 : 0;
    const absl::Span<const float> values = argument.parameter->tensor->values<float>();
    if (!std::all_of(values.begin(), values.end(), [none](float value) { return value == none; })) return false;
  }
  return norm.attribute("activation").as_string() == "none";
}

}  // namespace

std::vector<NewCall> OfGroups(const Node& node) {
  if (!IsView(node) || !node.operand(0)->is_call()) return {};
  const Node& norm = *node.operand(0);
  if (!norm.IsOp("instance_norm") || !norm.has_one_use() || !IsView(*norm.operand(0))) return {};
  Node* x = norm.operand(0)->operand(0);
  if (!match::IsF32(*x) || x->type() != node.type() || x->tensor_type().rank() < 2 || !HasNoParameters(norm)) return {};
  const Shape &image = x->tensor_type().shape, &rows = norm.tensor_type().shape;
  if (rows[0] != image[0] || rows[1] < 1 || image[1] % rows[1] != 0) return {};
  return {{"group_norm", {x}, {}, {{"num_groups", rows[1]}, {"eps", norm.attribute("eps")}}}};
}

}  // namespace fuselage::normalize
