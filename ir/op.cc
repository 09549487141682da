#include "ir/op.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/base/hash_map.h"

namespace fuselage::ir {
namespace {

absl::Status CheckAttributes(const OpSchema& schema, const AttributeMap& attributes) {
  for (const auto& [name, attribute] : attributes) {
    const AttributeSpec* spec = schema.FindAttributeOrNull(name);
    if (spec == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          schema.name, " has no attribute '", name, "', only ",
          absl::StrJoin(schema.attributes, ", ", [](std::string* out, const AttributeSpec& s) { *out += s.name; })));
    }
    if (spec->kind != attribute.kind()) {
      return absl::InvalidArgumentError(absl::StrCat(schema.name, ": attribute ", name, "=", attribute.ToString(),
                                                     " is of kind ", AttributeKindName(attribute.kind()), ", wanted ",
                                                     AttributeKindName(spec->kind)));
    }
  }
  for (const AttributeSpec& spec : schema.attributes) {
    if (!spec.default_value && attributes.find(spec.name) == attributes.end()) {
      return absl::InvalidArgumentError(absl::StrCat(schema.name, ": attribute ", spec.name, " is missing"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckOperands(const OpSchema& schema, const std::vector<const Type*>& operands) {
  const bool variadic = !schema.operands.empty() && schema.operands.back().variadic;
  if (!variadic && operands.size() > schema.operands.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(schema.name, " takes ", schema.operands.size(), " operands at most, found ", operands.size()));
  }
  for (size_t i = 0; i < std::max(operands.size(), schema.operands.size()); ++i) {
    const OperandSpec& spec = schema.operands[std::min(i, schema.operands.size() - 1)];
    if (i >= operands.size() || operands[i] == nullptr) {
      if (spec.optional || (spec.variadic && i >= operands.size() && i >= schema.operands.size())) continue;
      return absl::InvalidArgumentError(absl::StrCat(schema.name, ": operand ", i, " (", spec.name, ") is missing"));
    }
    if (!operands[i]->is_tensor() && !(schema.takes_tuple && i == 0)) {
      return absl::InvalidArgumentError(absl::StrCat(schema.name, ": operand ", i, " (", spec.name, ") is ",
                                                     ToString(*operands[i]), ", wanted a tensor"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckResult(const Type& type) {
  for (const TensorType& element : type.elements()) {
    absl::StatusOr<int64_t> count = CheckedNumElements(element.shape);
    if (!count.ok()) return count.status();
    if (element.quant) RETURN_IF_ERROR(CheckQuantParams(*element.quant, element.dtype, element.shape));
  }
  return absl::OkStatus();
}

}  // namespace

const Attribute& OpCall::attribute(absl::string_view name) const {
  const auto it = attributes_.find(name);
  if (it != attributes_.end()) return it->second;
  const AttributeSpec* spec = schema_.FindAttributeOrNull(name);
  FUSELAGE_CHECK(spec != nullptr && spec->default_value.has_value());
  return *spec->default_value;
}

const AttributeSpec* OpSchema::FindAttributeOrNull(absl::string_view attribute) const {
  for (const AttributeSpec& spec : attributes) {
    if (spec.name == attribute) return &spec;
  }
  return nullptr;
}

int OpSchema::OperandIndex(absl::string_view operand) const {
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].name == operand) return static_cast<int>(i);
  }
  return -1;
}

void OpRegistry::Register(OpSchema schema) {
  FUSELAGE_CHECK(!schema.name.empty() && schema.infer != nullptr && schema.evaluate != nullptr);
  const bool computes = schema.elementwise && schema.view == View::kNone;
  if (computes && schema.operations_per_element == 0) schema.operations_per_element = 1;
  auto owned = std::make_unique<OpSchema>(std::move(schema));
  for (const std::string& alias : owned->aliases) {
    MakeRoom(by_alias_);
    const bool inserted = by_alias_.emplace(std::string(alias), owned.get()).second;
    FUSELAGE_CHECK(inserted && !ops_.contains(alias));
  }
  FUSELAGE_CHECK(!by_alias_.contains(owned->name));
  std::string name = owned->name;
  if (!owned->quantized_form_of.empty()) {
    MakeRoom(quantized_forms_);
    FUSELAGE_CHECK(quantized_forms_.emplace(owned->quantized_form_of, owned.get()).second);
  }
  MakeRoom(ops_);
  const bool inserted = ops_.emplace(std::move(name), std::move(owned)).second;
  FUSELAGE_CHECK(inserted);
}

const OpSchema* OpRegistry::FindOrNull(absl::string_view name) const {
  if (const auto it = ops_.find(name); it != ops_.end()) return it->second.get();
  const auto it = by_alias_.find(name);
  return it == by_alias_.end() ? nullptr : it->second;
}

const OpSchema* OpRegistry::FindQuantizedFormOrNull(absl::string_view name) const {
  const auto it = quantized_forms_.find(name);
  return it == quantized_forms_.end() ? nullptr : it->second;
}

Cost OpRegistry::CostOf(const OpSchema& schema, const AttributeMap& attributes, std::vector<const Type*> operands,
                        const Type& result) const {
  const OpSchema* op = &schema;
  if (op->cost == nullptr && !op->quantized_form_of.empty()) {
    if (const OpSchema* float_op = FindOrNull(op->quantized_form_of)) op = float_op;
  }
  if (op->cost == nullptr) return {0, op->operations_per_element * NumElements(result)};
  InferCall call(schema, attributes);
  call.operands = std::move(operands);
  return op->cost(call, result);
}

std::vector<const OpSchema*> OpRegistry::SortedByName() const {
  std::vector<const OpSchema*> sorted;
  for (const auto& [name, schema] : ops_) sorted.push_back(schema.get());
  std::sort(sorted.begin(), sorted.end(), [](const OpSchema* a, const OpSchema* b) { return a->name < b->name; });
  return sorted;
}

absl::StatusOr<Type> Infer(const OpSchema& schema, const AttributeMap& attributes, std::vector<const Type*> operands) {
  RETURN_IF_ERROR(CheckAttributes(schema, attributes));
  RETURN_IF_ERROR(CheckOperands(schema, operands));
  InferCall call(schema, attributes);
  call.operands = std::move(operands);
  absl::StatusOr<Type> type = schema.infer(call);
  if (!type.ok()) return Annotate(type.status(), schema.name);
  RETURN_IF_ERROR(Annotate(CheckResult(*type), schema.name));
  return type;
}

absl::StatusOr<std::vector<Tensor>> Evaluate(const OpSchema& schema, const AttributeMap& attributes,
                                             std::vector<const std::vector<Tensor>*> operands,
                                             const Type& result_type) {
  EvaluateCall call(schema, attributes);
  call.operands = std::move(operands);
  call.result_type = &result_type;
  absl::StatusOr<std::vector<Tensor>> result = schema.evaluate(call);
  if (!result.ok()) return Annotate(result.status(), schema.name);
  FUSELAGE_CHECK(result->size() == result_type.elements().size());
  for (size_t i = 0; i < result->size(); ++i) {
    const TensorType& wanted = result_type.elements()[i];
    FUSELAGE_CHECK((*result)[i].shape() == wanted.shape && (*result)[i].dtype() == wanted.dtype);
    (*result)[i].set_type(wanted);
  }
  return result;
}

}  // namespace fuselage::ir
