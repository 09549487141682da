#include "frontend/onnx/builder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "frontend/onnx/tensors.h"
#include "ir/batch.h"

namespace fuselage::onnx {
namespace {

bool AllConstant(const std::vector<Value>& operands) {
  return std::all_of(operands.begin(), operands.end(),
                     [](const Value& value) { return !value.present() || value.constant != nullptr; });
}

// Whether a call has the batch in its own attributes.
bool HasBatch(const AttributeMap& attributes) {
  const auto it = attributes.find(ir::kBatchAttribute);
  return it != attributes.end() && it->second.as_int() > 0;
}

AttributeMap AtNextBatch(AttributeMap attributes) {
  if (HasBatch(attributes)) attributes.at(ir::kBatchAttribute) = attributes.at(ir::kBatchAttribute).as_int() + 1;
  return attributes;
}

// Row 0, where all rows of `now` and of `next`, which has one more, are the same.
std::optional<Tensor> RepeatedRow(const Tensor& now, const Tensor& next) {
  if (now.rank() == 0 || now.type().quant || now.dim(0) < 1) return std::nullopt;
  TensorType type = now.type();
  ++type.shape[0];
  if (next.type() != type) return std::nullopt;
  type.shape[0] = 1;
  Tensor row(type);
  std::memcpy(row.raw_data(), now.raw_data(), row.byte_size());
  for (const Tensor* rows : {&now, &next}) {
    const char* from = static_cast<const char*>(rows->raw_data());
    for (int64_t i = 0; i < rows->dim(0); ++i, from += row.byte_size()) {
      if (std::memcmp(from, row.raw_data(), row.byte_size()) != 0) return std::nullopt;
    }
  }
  return row;
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
    ASSIGN_OR_RETURN(ir::Node * node, AddFunction(element, "getitem", {tuple}, {{"index", static_cast<int64_t>(i)}}));
    values[i] = {element, nullptr, node};
  }
  return values;
}

absl::StatusOr<std::vector<Tensor>> Builder::EvaluateConstants(const ir::OpSchema& schema,
                                                               const std::vector<const std::vector<Tensor>*>& operands,
                                                               const AttributeMap& attributes) {
  std::vector<ir::Type> types(operands.size());
  std::vector<const ir::Type*> type_pointers(operands.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i] == nullptr) continue;
    types[i] = ir::Type((*operands[i])[0].type());
    type_pointers[i] = &types[i];
  }
  ASSIGN_OR_RETURN(const ir::Type type, ir::Infer(schema, attributes, type_pointers));
  for (const TensorType& element : type.elements()) {
    RETURN_IF_ERROR(budget_->Charge(element.byte_size(), "its constant result"));
  }
  // The reference evaluation copies operands as numbers of 8 bytes, stretched to the result's shape where they
  // broadcast.
  int64_t copies = 0;
  for (const std::vector<Tensor>* operand : operands) {
    if (operand == nullptr || schema.view != ir::View::kNone) continue;
    const int64_t bytes = 8 * std::max((*operand)[0].num_elements(), type.elements()[0].num_elements());
    RETURN_IF_ERROR(budget_->Charge(bytes, "a copy of its operand"));
    copies += bytes;
  }
  ASSIGN_OR_RETURN(std::vector<Tensor> results, ir::Evaluate(schema, attributes, operands, type));
  budget_->Release(copies);
  return results;
}

absl::StatusOr<std::vector<Value>> Builder::Fold(const std::string& name, const ir::OpSchema& schema,
                                                 const std::vector<Value>& operands, const AttributeMap& attributes) {
  std::vector<const std::vector<Tensor>*> now, next;
  bool depends_on_batch = HasBatch(attributes);
  for (const Value& operand : operands) {
    const bool depends = operand.at_next_batch != nullptr;
    now.push_back(operand.constant.get());
    next.push_back(depends ? operand.at_next_batch.get() : now.back());
    depends_on_batch = depends_on_batch || depends;
  }
  ASSIGN_OR_RETURN(std::vector<Tensor> results, EvaluateConstants(schema, now, attributes));
  std::vector<Value> values;
  for (Tensor& result : results) {
    values.push_back(Constant(results.size() > 1 ? absl::StrCat(name, ".", values.size()) : name, std::move(result)));
  }
  if (!depends_on_batch) return values;
  absl::StatusOr<std::vector<Tensor>> others = EvaluateConstants(schema, next, AtNextBatch(attributes));
  for (size_t i = 0; others.ok() && i < std::min(values.size(), others->size()); ++i) {
    SetAtNextBatch(values[i], std::move((*others)[i]));
  }
  return values;
}

void Builder::SetAtNextBatch(Value& value, Tensor tensor) {
  if (tensor.SameBytes(*value.TensorOrNull())) return budget_->Release(tensor.byte_size());
  value.at_next_batch = Constant("", std::move(tensor)).constant;
}

absl::StatusOr<ir::Node*> Builder::Call(const std::string& name, absl::string_view target,
                                        const std::vector<Value>& operands, AttributeMap attributes) {
  std::vector<ir::Node*> nodes;
  nodes.reserve(operands.size());
  for (const Value& operand : operands) {
    ASSIGN_OR_RETURN(ir::Node * node, NodeOf(operand));
    nodes.push_back(node);
  }
  ASSIGN_OR_RETURN(ir::Node * node, AddFunction(name, target, std::move(nodes), std::move(attributes)));
  for (const TensorType& element : node->type().elements()) {
    RETURN_IF_ERROR(budget_->CheckValue(element, "its result"));
  }
  return node;
}

absl::StatusOr<ir::Node*> Builder::AddFunction(const std::string& name, absl::string_view target,
                                               std::vector<ir::Node*> operands, AttributeMap attributes) {
  ASSIGN_OR_RETURN(ir::Node * node, graph_->AddFunction(name, target, std::move(operands), std::move(attributes)));
  std::vector<const ir::Type*> types;
  bool depends_on_batch = HasBatch(node->attributes());
  for (const ir::Node* operand : node->operands()) {
    const auto it = at_next_batch_.find(operand);
    types.push_back(it != at_next_batch_.end() ? &it->second : operand == nullptr ? nullptr : &operand->type());
    depends_on_batch = depends_on_batch || it != at_next_batch_.end();
  }
  if (!depends_on_batch) return node;
  absl::StatusOr<ir::Type> type = ir::Infer(*node->op(), AtNextBatch(node->attributes()), std::move(types));
  if (type.ok() && *type != node->type()) at_next_batch_.emplace(node, *std::move(type));
  return node;
}

void Builder::MarkBatch(const ir::Node* placeholder) {
  TensorType type = placeholder->tensor_type();
  ++type.shape[0];
  if (CheckedNumElements(type.shape).ok()) at_next_batch_.emplace(placeholder, std::move(type));
}

const Shape& Builder::ShapeAtNextBatch(const Value& value) const {
  if (value.at_next_batch != nullptr) return (*value.at_next_batch)[0].shape();
  const auto it = at_next_batch_.find(value.node);
  return it == at_next_batch_.end() ? value.shape() : it->second.tensor().shape;
}

void Builder::WarnOfFixedBatch(const Value& value) {
  if (value.at_next_batch == nullptr || options_.warnings == nullptr) return;
  options_.warnings->push_back(
      absl::StrCat("tensor ", Quote(value.name), " follows from the batch: the graph holds for this batch alone"));
}

absl::StatusOr<ir::Node*> Builder::NodeOf(const Value& value) {
  if (value.constant == nullptr) return value.node;
  const Tensor* tensor = value.TensorOrNull();
  if (const auto it = get_attrs_.find(tensor); it != get_attrs_.end()) return it->second;
  if (value.at_next_batch != nullptr) {
    if (std::optional<Tensor> row = RepeatedRow(*tensor, (*value.at_next_batch)[0])) {
      std::vector<int64_t> shape(row->rank(), -1);
      ASSIGN_OR_RETURN(const Value charged, ChargedConstant(value.name, *std::move(row)));
      ASSIGN_OR_RETURN(ir::Node * parameter, NodeOf(charged));
      ASSIGN_OR_RETURN(ir::Node * rows,
                       AddFunction(absl::StrCat(value.name, ".rows"), "expand", {parameter},
                                   {{"shape", std::move(shape)}, {ir::kBatchAttribute, tensor->dim(0)}}));
      get_attrs_.emplace(tensor, rows);
      kept_.push_back(value.constant);
      return rows;
    }
  }
  WarnOfFixedBatch(value);
  // A single infinity is meant: what a causal mask writes, or the bound of a clamp.
  if (tensor->num_elements() != 1 || !IsFloat(tensor->dtype()) || !std::isinf(tensor->At(0))) {
    RETURN_IF_ERROR(CheckFinite(*tensor, absl::StrCat("tensor ", Quote(value.name)), options_));
  }
  const std::string parameter =
      graph_->AddParameter(ir::SanitizedName(value.name), std::shared_ptr<const Tensor>(value.constant, tensor));
  ASSIGN_OR_RETURN(ir::Node * node, graph_->AddGetAttr(parameter, parameter));
  get_attrs_.emplace(tensor, node);
  return node;
}

}  // namespace fuselage::onnx
