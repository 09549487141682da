#include "passes/normalize/lookup.h"

#include <algorithm>
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

// Without the dimensions of size 1 in front: what goes with each row has no more than a row.
TensorType OfRow(TensorType constant) {
  const auto first = std::find_if(constant.shape.begin(), constant.shape.end(), [](int64_t dim) { return dim != 1; });
  constant.shape.erase(constant.shape.begin(), first);
  return constant;
}

// A vector for each index, `on` at its place and `off` elsewhere.
struct OneHot {
  Node* index = nullptr;  // Null: there is none.
  float off = 0, on = 1;
  bool counts_from_end = false;  // Where it is negative.
  bool has_axis = false;         // Of size 1, where the vectors have their classes.
};

class Lookup {
 public:
  Lookup(const Node& node, NewNodes& nodes) : node_(node), nodes_(nodes) {}

  absl::StatusOr<bool> OfOneHot(OneHot of) {
    const Tensor& weight = *node_.graph().ParameterOfOrNull(node_, "weight");
    const Tensor* bias = node_.graph().ParameterOfOrNull(node_, "bias");
    const float off = of.off, on = of.on;
    Node* index = of.index;
    const int64_t out = weight.dim(0), classes = weight.dim(1);
    if (of.has_axis) {
      const std::vector<int64_t> last = {index->tensor_type().rank() - 1};
      ASSIGN_OR_RETURN(index, nodes_.Add("squeeze", {index}, {{"dims", last}}));
    }
    // Rows 0 to classes - 1, one for what lies beyond them on either side, and those that count from the end.
    const int64_t from_end = of.counts_from_end ? classes : 0;
    const int64_t rows = classes + 2 + from_end;
    Tensor table(DType::kF32, {rows, out});
    for (int64_t o = 0; o < out; ++o) {
      const float* w = weight.data<float>() + o * classes;
      double none = bias == nullptr ? 0 : bias->data<float>()[o];
      for (int64_t c = 0; off != 0 && c < classes; ++c) none += static_cast<double>(off) * w[c];
      for (int64_t row = 0; row < rows; ++row) {
        const int64_t c = row < classes ? row : row - classes - 2;
        const bool inside = row != classes && row != classes + 1;
        const double value = inside ? none + (static_cast<double>(on) - off) * w[c] : none;
        table.data<float>()[row * out + o] = static_cast<float>(value);
      }
    }
    for (const auto& [op, bound] : {std::make_pair("maximum", -from_end - 1), std::make_pair("minimum", classes)}) {
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
      Tensor value = ValueOf(operand->IsOp("index_select") ? *operand->operand(0) : *operand);
      if (!operand->IsOp("index_select")) value.set_type(OfRow(value.type()));
      types.push_back(ir::Type(value.type()));
      values.push_back({std::move(value)});
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

bool IsIndex(const Node& node) {
  return node.tensor_type().dtype == DType::kI32 || node.tensor_type().dtype == DType::kI64;
}

// 0, 1, 2, ... along the last axis.
bool IsCount(const Node& node) {
  if (node.kind() != ir::NodeKind::kGetAttr || !IsIndex(node) || node.tensor_type().shape.empty()) return false;
  const Tensor& value = ValueOf(node);
  bool counts = value.num_elements() == value.shape().back();
  for (int64_t i = 0; counts && i < value.num_elements(); ++i) counts = value.At(i) == static_cast<double>(i);
  return counts;
}

// As JAX writes it.
OneHot ComparedAt(const Node& to) {
  if (!to.IsOp("to") || !to.operand(0)->IsOp("eq") || !match::IsF32(to)) return {};
  const Node& eq = *to.operand(0);
  for (const int of : {0, 1}) {
    Node* index = eq.operand(of);
    const Shape &shape = index->tensor_type().shape, &result = to.tensor_type().shape;
    const bool has_axis = shape.size() == result.size() && !shape.empty() && shape.back() == 1;
    if (has_axis && IsIndex(*index) && IsCount(*eq.operand(1 - of))) {
      return {index, 0, 1, /*counts_from_end=*/false, /*has_axis=*/true};
    }
  }
  return {};
}

OneHot OneHotAt(const Node& node) {
  if (!node.IsOp("one_hot")) return ComparedAt(node);
  const int64_t dim = node.attribute("dim").as_int(), last = node.tensor_type().rank() - 1;
  if ((dim != -1 && dim != last) || !IsIndex(*node.operand(0)) || !IsConstantF32(*node.operand(1))) return {};
  const float* values = ValueOf(*node.operand(1)).data<float>();
  return {node.operand(0), values[0], values[1], /*counts_from_end=*/true, /*has_axis=*/false};
}

// What a linear layer is of, if that is one.
OneHot OneHotOf(const Node& node) {
  const bool is_linear = node.IsOp("linear") && node.kind() == ir::NodeKind::kCallModule && node.num_operands() == 1 &&
                         node.graph().ParameterOfOrNull(node, "weight")->dtype() == DType::kF32 &&
                         node.attribute("activation").as_string() == "none";
  return is_linear ? OneHotAt(*node.operand(0)) : OneHot();
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
    if (operand->kind() == ir::NodeKind::kGetAttr && OfRow(operand->tensor_type()).rank() >= table.rank())
      return nullptr;
  }
  return table.num_elements() <= node.tensor_type().num_elements() ? first : nullptr;
}

}  // namespace

absl::StatusOr<bool> AsLookup(const Node& node, NewNodes& nodes) {
  if (const OneHot of = OneHotOf(node); of.index != nullptr) return Lookup(node, nodes).OfOneHot(of);
  const Node* looked_up = LookedUpOrNull(node);
  return looked_up == nullptr ? absl::StatusOr<bool>(false) : Lookup(node, nodes).OfElementwise(*looked_up);
}

}  // namespace fuselage::normalize
