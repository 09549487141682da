#include "ir/ops/int8/core/part.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace fuselage::ops::int8 {

Part::Part(void (*register_ops)(ir::OpRegistry&), absl::string_view op, absl::string_view prefix) : prefix_(prefix) {
  auto ops = std::make_shared<ir::OpRegistry>();
  register_ops(*ops);
  schema_ = ops->FindOrNull(op);
  FUSELAGE_CHECK(schema_ != nullptr);
  ops_ = std::move(ops);
}

std::vector<ir::AttributeSpec> Part::Attributes() const {
  std::vector<ir::AttributeSpec> attributes = schema_->attributes;
  for (ir::AttributeSpec& attribute : attributes) attribute.name = absl::StrCat(prefix_, attribute.name);
  return attributes;
}

AttributeMap Part::AttributesOf(const ir::OpCall& whole) const {
  AttributeMap attributes;
  for (const ir::AttributeSpec& spec : schema_->attributes) {
    attributes.emplace(spec.name, whole.attribute(absl::StrCat(prefix_, spec.name)));
  }
  return attributes;
}

absl::StatusOr<ir::Type> Part::Infer(const ir::OpCall& whole, const std::vector<const ir::Type*>& operands) const {
  return ir::Infer(*schema_, AttributesOf(whole), operands);
}

ir::Cost Part::CostOf(const ir::OpRegistry& ops, const ir::OpCall& whole, const std::vector<const ir::Type*>& operands,
                      const ir::Type& result) const {
  return ops.CostOf(*schema_, AttributesOf(whole), operands, result);
}

absl::StatusOr<std::vector<Tensor>> Part::Evaluate(const ir::OpCall& whole,
                                                   const std::vector<const std::vector<Tensor>*>& operands) const {
  std::vector<ir::Type> types(operands.size());
  std::vector<const ir::Type*> present(operands.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i] == nullptr) continue;
    types[i] = (*operands[i])[0].type();
    present[i] = &types[i];
  }
  ASSIGN_OR_RETURN(const ir::Type type, Infer(whole, present));
  return ir::Evaluate(*schema_, AttributesOf(whole), operands, type);
}

}  // namespace fuselage::ops::int8
