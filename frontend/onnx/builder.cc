#include "frontend/onnx/builder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "frontend/onnx/rows.h"
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
  if (!HasRows(operands)) return EmitAsIs(name, target, operands, std::move(attributes));
  ASSIGN_OR_RETURN(std::vector<Value> values,
                   EmitOnRows(*this, name, target, operands, std::move(attributes), /*wanted=*/nullptr));
  return std::move(values[0]);
}

absl::StatusOr<Value> Builder::EmitAsIs(const std::string& name, absl::string_view target,
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
  if (!HasRows(operands)) return EmitTupleAsIs(name, target, operands, std::move(attributes), wanted);
  return EmitOnRows(*this, name, target, operands, std::move(attributes), &wanted);
}

absl::StatusOr<std::vector<Value>> Builder::EmitTupleAsIs(const std::string& name, absl::string_view target,
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
  std::vector<const std::vector<Tensor>*> now, next, next_row, no_row;
  bool depends_on_batch = HasBatch(attributes);
  for (const Value& operand : operands) {
    const bool depends = operand.at_next_batch != nullptr;
    now.push_back(operand.constant.get());
    next.push_back(depends ? operand.at_next_batch.get() : now.back());
    next_row.push_back(operand.follows != nullptr ? operand.at_next_row.get() : now.back());
    no_row.push_back(operand.follows != nullptr ? operand.at_no_row.get() : now.back());
    depends_on_batch = depends_on_batch || depends;
  }
  ASSIGN_OR_RETURN(ir::Node * follows, FollowedBy(operands));
  ASSIGN_OR_RETURN(std::vector<Tensor> results, EvaluateConstants(schema, now, attributes));
  std::vector<Value> values;
  for (Tensor& result : results) {
    values.push_back(Constant(results.size() > 1 ? absl::StrCat(name, ".", values.size()) : name, std::move(result)));
  }
  if (follows != nullptr) {
    const bool known = std::equal(now.begin(), now.end(), no_row.begin(),
                                  [](const auto* a, const auto* b) { return (a == nullptr) == (b == nullptr); });
    absl::StatusOr<std::vector<Tensor>> more = EvaluateConstants(schema, next_row, attributes);
    absl::StatusOr<std::vector<Tensor>> none = absl::UnimplementedError("");
    if (known) none = EvaluateConstants(schema, no_row, attributes);
    for (size_t i = 0; more.ok() && i < values.size(); ++i) {
      SetAtRows(values[i], std::move((*more)[i]),
                none.ok() ? absl::StatusOr<Tensor>(std::move((*none)[i])) : none.status(), follows);
    }
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

void Builder::SetAtRows(Value& value, absl::StatusOr<Tensor> next, absl::StatusOr<Tensor> none, ir::Node* follows) {
  if (!next.ok()) return;
  const Tensor& now = *value.TensorOrNull();
  const auto same = [&](const absl::StatusOr<Tensor>& other) {
    return other.ok() && other->shape() == now.shape() && other->SameBytes(now);
  };
  if (same(next) && same(none)) {
    budget_->Release(next->byte_size() + none->byte_size());
    return;
  }
  const Shape &shape = now.shape(), &more = next->shape();
  const auto [axis, other] = std::mismatch(shape.begin(), shape.end(), more.begin(), more.end());
  if (axis != shape.end()) value.rows = {follows, static_cast<int>(axis - shape.begin())};
  value.at_next_row = Constant("", *std::move(next)).constant;
  if (none.ok()) value.at_no_row = Constant("", *std::move(none)).constant;
  value.follows = follows;
}

// For one row more it is as much larger as for each before.
absl::StatusOr<ir::Node*> Builder::ComputedSize(const Value& value) {
  const Tensor &now = *value.TensorOrNull(), &next = (*value.at_next_row)[0];
  const Tensor* none = value.at_no_row == nullptr ? nullptr : &(*value.at_no_row)[0];
  const Shape& counted = value.follows->tensor_type().shape;
  bool linear = none != nullptr && none->shape() == now.shape() && now.type().quant == std::nullopt;
  Tensor slope(DType::kI64, now.shape()), first(DType::kI64, now.shape());
  int64_t room = -1;
  for (int64_t i = 0; linear && i < now.num_elements(); ++i) {
    const double step = next.At(i) - now.At(i), rise = now.At(i) - none->At(i);
    slope.Set(i, step);
    first.Set(i, none->At(i));
    if (step == 0 && rise == 0) continue;
    const auto rows = step == 0 ? 0 : static_cast<int64_t>(rise / step);
    linear = step != 0 && static_cast<double>(rows) * step == rise && (room < 0 || room == rows) && rows > 0;
    room = rows;
  }
  if (!linear || counted != Shape{1}) {
    return absl::UnimplementedError(absl::StrCat("found ", Quote(value.name),
                                                 ", which follows from how many elements data says there are, as a "
                                                 "computed value"));
  }
  const Value count{value.follows->name(), nullptr, value.follows};
  const std::string& name = value.name;
  ASSIGN_OR_RETURN(const Value steps, ChargedConstant(absl::StrCat(name, ".step"), std::move(slope)));
  ASSIGN_OR_RETURN(const Value start, ChargedConstant(absl::StrCat(name, ".start"), std::move(first)));
  ASSIGN_OR_RETURN(Value size, EmitAsIs(absl::StrCat(name, ".rise"), "mul", {count, steps}, {}));
  ASSIGN_OR_RETURN(size, EmitAsIs(absl::StrCat(name, ".size"), "add", {size, start}, {}));
  ASSIGN_OR_RETURN(size, EmitAsIs(absl::StrCat(name, ".shaped"), "reshape", {size}, {{"shape", now.shape()}}));
  if (now.dtype() == DType::kI64) return size.node;
  ASSIGN_OR_RETURN(size, EmitAsIs(absl::StrCat(name, ".number"), "to", {size}, {{"dtype", now.dtype()}}));
  return size.node;
}

absl::StatusOr<ir::Node*> Builder::FollowedBy(const std::vector<Value>& values) {
  ir::Node* found = nullptr;
  for (const Value& value : values) {
    if (value.follows == nullptr || value.follows == found) continue;
    if (found != nullptr) {
      return absl::UnimplementedError("found sizes of two values of which data says how long they are, wanted one's");
    }
    found = value.follows;
  }
  return found;
}

const Value* Builder::MadeOrNull(const std::string& key) const {
  const auto it = made_.find(key);
  return it == made_.end() ? nullptr : &it->second;
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
  if (value.follows != nullptr && value.rows.count == nullptr) return ComputedSize(value);
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
  RETURN_IF_ERROR(CheckFinite(*tensor, absl::StrCat("tensor ", Quote(value.name)), options_));
  const std::string parameter =
      graph_->AddParameter(ir::SanitizedName(value.name), std::shared_ptr<const Tensor>(value.constant, tensor));
  ASSIGN_OR_RETURN(ir::Node * node, graph_->AddGetAttr(parameter, parameter));
  get_attrs_.emplace(tensor, node);
  return node;
}

}  // namespace fuselage::onnx
