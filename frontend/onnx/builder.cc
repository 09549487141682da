#include "frontend/onnx/builder.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "frontend/onnx/tensors.h"

namespace fuselage::onnx {
namespace {

bool AllConstant(const std::vector<Value>& operands) {
  return std::all_of(operands.begin(), operands.end(),
                     [](const Value& value) { return !value.present() || value.constant != nullptr; });
}

}  // namespace

Value Builder::Constant(std::string name, Tensor tensor) {
  auto tensors = std::make_shared<std::vector<Tensor>>();
  tensors->push_back(std::move(tensor));
  return {std::move(name), std::move(tensors), nullptr};
}

absl::StatusOr<Value> Builder::ChargedConstant(std::string name, Tensor tensor) {
  RETURN_IF_ERROR(budget_->Charge(tensor.byte_size(), absl::StrCat("tensor ", Quote(name))));
  return Constant(std::move(name), std::move(tensor));
}

absl::StatusOr<Value> Builder::Emit(const std::string& name, absl::string_view target,
                                    const std::vector<Value>& operands, AttributeMap attributes) {
  const ir::OpSchema* schema = graph_->ops().FindOrNull(target);
  if (schema != nullptr && target != "dequantize" && AllConstant(operands)) {
    ASSIGN_OR_RETURN(std::vector<Value> values, Fold(name, *schema, operands, attributes));
    return std::move(values[0]);
  }
  ASSIGN_OR_RETURN(ir::Node * node, Call(name, target, operands, std::move(attributes)));
  return Value{name, nullptr, node};
}

absl::StatusOr<std::vector<Value>> Builder::EmitTuple(const std::string& name, absl::string_view target,
                                                      const std::vector<Value>& operands, AttributeMap attributes,
                                                      const std::vector<bool>& wanted) {
  const ir::OpSchema* schema = graph_->ops().FindOrNull(target);
  if (schema != nullptr && AllConstant(operands)) return Fold(name, *schema, operands, attributes);
  ASSIGN_OR_RETURN(ir::Node * tuple, Call(name, target, operands, std::move(attributes)));
  std::vector<Value> values(wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i]) continue;
    const std::string element = absl::StrCat(name, ".", i);
    ASSIGN_OR_RETURN(ir::Node * node,
                     graph_->AddFunction(element, "getitem", {tuple}, {{"index", static_cast<int64_t>(i)}}));
    values[i] = {element, nullptr, node};
  }
  return values;
}

absl::StatusOr<std::vector<Value>> Builder::Fold(const std::string& name, const ir::OpSchema& schema,
                                                 const std::vector<Value>& operands, const AttributeMap& attributes) {
  std::vector<ir::Type> types(operands.size());
  std::vector<const ir::Type*> type_pointers(operands.size());
  std::vector<const std::vector<Tensor>*> tensors(operands.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i].present()) continue;
    types[i] = ir::Type(operands[i].type());
    type_pointers[i] = &types[i];
    tensors[i] = operands[i].constant.get();
  }
  ASSIGN_OR_RETURN(const ir::Type type, ir::Infer(schema, attributes, type_pointers));
  for (const TensorType& element : type.elements()) {
    RETURN_IF_ERROR(budget_->Charge(element.byte_size(), "its constant result"));
  }
  // The reference evaluation copies operands as numbers of 8 bytes, stretched to the result's shape where they broadcast.
  int64_t copies = 0;
  for (const Value& operand : operands) {
    if (!operand.present() || schema.view) continue;
    const int64_t bytes = 8 * std::max(operand.type().num_elements(), type.elements()[0].num_elements());
    RETURN_IF_ERROR(budget_->Charge(bytes, "a copy of its operand"));
    copies += bytes;
  }
  ASSIGN_OR_RETURN(std::vector<Tensor> results, ir::Evaluate(schema, attributes, tensors, type));
  budget_->Release(copies);
  std::vector<Value> values;
  for (Tensor& result : results) {
    values.push_back(Constant(type.is_tuple() ? absl::StrCat(name, ".", values.size()) : name, std::move(result)));
  }
  return values;
}

absl::StatusOr<ir::Node*> Builder::Call(const std::string& name, absl::string_view target,
                                        const std::vector<Value>& operands, AttributeMap attributes) {
  std::vector<ir::Node*> nodes;
  nodes.reserve(operands.size());
  for (const Value& operand : operands) {
    ASSIGN_OR_RETURN(ir::Node * node, NodeOf(operand));
    nodes.push_back(node);
  }
  ASSIGN_OR_RETURN(ir::Node * node, graph_->AddFunction(name, target, std::move(nodes), std::move(attributes)));
  for (const TensorType& element : node->type().elements()) {
    if (element.byte_size() > budget_->limit()) {
      return absl::ResourceExhaustedError(absl::StrCat("its result ", ToString(element), " needs ", element.byte_size(),
                                                       " bytes, wanted at most ", budget_->limit()));
    }
  }
  return node;
}

absl::StatusOr<ir::Node*> Builder::NodeOf(const Value& value) {
  if (value.constant == nullptr) return value.node;
  const Tensor* tensor = value.TensorOrNull();
  if (const auto it = get_attrs_.find(tensor); it != get_attrs_.end()) return it->second;
  RETURN_IF_ERROR(CheckFinite(value.name, *tensor));
  const std::string parameter =
      graph_->AddParameter(ir::SanitizedName(value.name), std::shared_ptr<const Tensor>(value.constant, tensor));
  ASSIGN_OR_RETURN(ir::Node * node, graph_->AddGetAttr(parameter, parameter));
  get_attrs_.emplace(tensor, node);
  return node;
}

absl::Status Builder::CheckFinite(const std::string& name, const Tensor& tensor) {
  if (!IsFloat(tensor.dtype())) return absl::OkStatus();
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const double value = tensor.At(i);
    if (std::isfinite(value)) continue;
    const std::string message =
        absl::StrCat("tensor ", Quote(name), ": found ", value, " as element ", i, ", wanted finite values");
    if (!options_.allow_nonfinite) {
      return absl::InvalidArgumentError(absl::StrCat(message, " (--allow_nonfinite accepts them)"));
    }
    if (options_.warnings != nullptr) options_.warnings->push_back(message);
    return absl::OkStatus();
  }
  return absl::OkStatus();
}

}  // namespace fuselage::onnx
