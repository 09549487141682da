#include "passes/normalize/lookup.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/match/in_place.h"
#include "ir/match/properties.h"

namespace fuselage::normalize {
namespace {

using ir::Node;

const Tensor& ValueOf(const Node& get_attr) { return *get_attr.graph().FindParameterOrNull(get_attr.target())->tensor; }

bool IsConstantF32(const Node& node) { return node.kind() == ir::NodeKind::kGetAttr && match::IsF32(node); }

class Lookup {
 public:
  Lookup(const Node& node, NewNodes& nodes) : node_(node), nodes_(nodes) {}

  absl::StatusOr<bool> OfOneHot() {
    const Node& one_hot = *node_.operand(0);
    Node* index = one_hot.operand(0);
    const Tensor& weight = *node_.graph().ParameterOfOrNull(node_, "weight");
    const Tensor* bias = node_.graph().ParameterOfOrNull(node_, "bias");
    const Tensor& values = ValueOf(*one_hot.operand(1));
    const float off = values.data<float>()[0], on = values.data<float>()[1];
    const int64_t out = weight.dim(0), classes = weight.dim(1);
    // Rows 0 to classes - 1, one for what lies beyond them on either side, and those that count from the end.
    Tensor table(DType::kF32, {2 * classes + 2, out});
    for (int64_t o = 0; o < out; ++o) {
      const float* w = weight.data<float>() + o * classes;
      double none = bias == nullptr ? 0 : bias->data<float>()[o];
      for (int64_t c = 0; off != 0 && c < classes; ++c) none += static_cast<double>(off) * w[c];
      for (int64_t row = 0; row < 2 * classes + 2; ++row) {
        const int64_t c = row < classes ? row : row - classes - 2;
        const bool inside = row != classes && row != classes + 1;
        const double value = inside ? none + (static_cast<double>(on) - off) * w[c] : none;
        table.data<float>()[row * out + o] = static_cast<float>(value);
      }
    }
    for (const auto& [op, bound] : {std::make_pair("maximum", -classes - 1), std::make_pair("minimum", classes)}) {
      Tensor limit(index->tensor_type().dtype, {});
      limit.Set(0, static_cast<double>(bound));
      ASSIGN_OR_RETURN(Node * constant, nodes_.Constant(std::move(limit), "bound"));
      ASSIGN_OR_RETURN(index, nodes_.Add(op, {index, constant}));
    }
    return Select(std::move(table), index);
  }

  // `lookup`: an operand.
  absl::StatusOr<bool> OfElementwise(const Node& lookup) {
    std::vector<std::vector<Tensor>> values;
    std::vector<ir::Type> types;
    for (const Node* operand : node_.operands()) {
      const Node& constant = operand->IsOp("index_select") ? *operand->operand(0) : *operand;
      values.push_back({ValueOf(constant)});
      types.push_back(constant.type());
    }
    std::vector<const std::vector<Tensor>*> operands;
    std::vector<const ir::Type*> operand_types;
    for (size_t i = 0; i < values.size(); ++i) {
      operands.push_back(&values[i]);
      operand_types.push_back(&types[i]);
    }
    const ir::Type& type = lookup.operand(0)->type();
    ASSIGN_OR_RETURN(const ir::Type found, ir::Infer(*node_.op(), node_.attributes(), operand_types));
    if (found != type) return false;
    ASSIGN_OR_RETURN(std::vector<Tensor> table,
                     ir::Evaluate(*node_.op(), node_.attributes(), std::move(operands), found));
    return Select(std::move(table[0]), lookup.operand(1));
  }

 private:
  absl::StatusOr<bool> Select(Tensor table, Node* index) {
    ASSIGN_OR_RETURN(Node * rows, nodes_.Constant(std::move(table), "table"));
    RETURN_IF_ERROR(nodes_.Add("index_select", {rows, index}, {{"dim", 0}}).status());
    return true;
  }

  const Node& node_;
  NewNodes& nodes_;
};

bool IsLinearOfOneHot(const Node& node) {
  if (!node.IsOp("linear") || node.kind() != ir::NodeKind::kCallModule || node.num_operands() != 1) return false;
  const Node& one_hot = *node.operand(0);
  if (!one_hot.IsOp("one_hot") || !IsConstantF32(*one_hot.operand(1))) return false;
  const int64_t dim = one_hot.attribute("dim").as_int(), last = one_hot.tensor_type().rank() - 1;
  const DType index = one_hot.operand(0)->tensor_type().dtype;
  return (dim == -1 || dim == last) && (index == DType::kI32 || index == DType::kI64) &&
         node.graph().ParameterOfOrNull(node, "weight")->dtype() == DType::kF32 &&
         node.attribute("activation").as_string() == "none";
}

// A lookup of rows of a constant, the first of the node's operands that is one. Null unless the others are lookups by
// the same index or constants that go with each row.
const Node* LookedUpOrNull(const Node& node) {
  if (!node.is_call() || !node.op()->elementwise || !match::IsF32(node)) return nullptr;
  if (node.module() == nullptr && match::IsInPlace(node.target())) return nullptr;
  const Node* first = nullptr;
  for (const Node* operand : node.operands()) {
    if (operand == nullptr) return nullptr;
    if (operand->IsOp("index_select") && operand->attribute("dim").as_int() == 0 &&
        IsConstantF32(*operand->operand(0))) {
      if (first == nullptr) first = operand;
      if (operand->operand(1) != first->operand(1) || operand->type() != first->type()) return nullptr;
    } else if (!IsConstantF32(*operand)) {
      return nullptr;
    }
  }
  if (first == nullptr || first->type() != node.type()) return nullptr;
  const TensorType& table = first->operand(0)->tensor_type();
  for (const Node* operand : node.operands()) {
    if (operand->kind() == ir::NodeKind::kGetAttr && operand->tensor_type().rank() >= table.rank()) return nullptr;
  }
  return table.num_elements() <= node.tensor_type().num_elements() ? first : nullptr;
}

}  // namespace

absl::StatusOr<bool> AsLookup(const Node& node, NewNodes& nodes) {
  if (IsLinearOfOneHot(node)) return Lookup(node, nodes).OfOneHot();
  const Node* looked_up = LookedUpOrNull(node);
  return looked_up == nullptr ? absl::StatusOr<bool>(false) : Lookup(node, nodes).OfElementwise(*looked_up);
}

}  // namespace fuselage::normalize
