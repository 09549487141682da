#include "ir/ops/core/testing.h"

#include <cstdio>

#include "absl/strings/str_cat.h"

namespace fuselage::ops {

absl::StatusOr<std::vector<Tensor>> OpTester::RunAll(absl::string_view op, const Operands& operands,
                                                     const AttributeMap& attributes) const {
  const ir::OpSchema* schema = registry_.FindOrNull(op);
  if (schema == nullptr) return absl::NotFoundError(absl::StrCat("no op ", op));
  std::vector<ir::Type> types(operands.size());
  std::vector<std::vector<Tensor>> values(operands.size());
  std::vector<const ir::Type*> type_pointers(operands.size(), nullptr);
  std::vector<const std::vector<Tensor>*> value_pointers(operands.size(), nullptr);
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i]) continue;
    types[i] = operands[i]->type();
    values[i].push_back(*operands[i]);
    type_pointers[i] = &types[i];
    value_pointers[i] = &values[i];
  }
  ASSIGN_OR_RETURN(const ir::Type result, ir::Infer(*schema, attributes, type_pointers));
  return ir::Evaluate(*schema, attributes, value_pointers, result);
}

Tensor OpTester::Run(absl::string_view op, const Operands& operands, const AttributeMap& attributes) const {
  absl::StatusOr<std::vector<Tensor>> results = RunAll(op, operands, attributes);
  if (!results.ok()) std::fprintf(stderr, "%s\n", results.status().ToString().c_str());
  FUSELAGE_CHECK(results.ok() && results->size() == 1);
  return std::move((*results)[0]);
}

std::string OpTester::Infer(absl::string_view op, const Types& operands, const AttributeMap& attributes) const {
  const ir::OpSchema* schema = registry_.FindOrNull(op);
  if (schema == nullptr) return absl::StrCat("no op ", op);
  std::vector<ir::Type> types(operands.size());
  std::vector<const ir::Type*> pointers(operands.size(), nullptr);
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i]) continue;
    types[i] = *operands[i];
    pointers[i] = &types[i];
  }
  absl::StatusOr<ir::Type> type = ir::Infer(*schema, attributes, pointers);
  return type.ok() ? ir::ToString(*type) : std::string(type.status().message());
}

Tensor Iota(Shape shape, float first, float step) {
  Tensor tensor(DType::kF32, std::move(shape));
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.data<float>()[i] = first + step * static_cast<float>(i);
  return tensor;
}

}  // namespace fuselage::ops
