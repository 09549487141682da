#include "ir/ops/fused_elementwise/fused_elementwise.h"

#include "absl/strings/str_cat.h"
#include "ir/base/elementwise.h"
#include "ir/ops/core/checks.h"

namespace fuselage::ops::fused_elementwise {
namespace {

using Steps = std::vector<ElementwiseStep>;

absl::StatusOr<Steps> StepsOf(const ir::OpCall& call, int num_operands) {
  ASSIGN_OR_RETURN(Steps steps, ParseElementwiseSteps(call.attribute("steps").as_strings(), num_operands));
  RETURN_IF_ERROR(CompileElementwise(steps).status());
  const int values = num_operands + static_cast<int>(steps.size());
  std::vector<bool> used(values, false);
  used.back() = true;
  for (const ElementwiseStep& step : steps) {
    for (const int operand : step.operands) used[operand] = true;
  }
  for (int i = 0; i < values; ++i) {
    if (!used[i]) return AttributeError(call, "steps", absl::StrCat("steps that read value ", i));
  }
  return steps;
}

// The types of all values.
absl::StatusOr<std::vector<ir::Type>> Types(const ir::OpRegistry& registry, const Steps& steps,
                                            std::vector<ir::Type> types) {
  types.reserve(types.size() + steps.size());
  for (const ElementwiseStep& step : steps) {
    const ir::OpSchema* op = registry.FindOrNull(step.op);
    if (op == nullptr) return absl::InvalidArgumentError(absl::StrCat("unknown operator ", step.op));
    std::vector<const ir::Type*> operands;
    for (const int operand : step.operands) operands.push_back(&types[operand]);
    absl::StatusOr<ir::Type> type = ir::Infer(*op, step.attributes, std::move(operands));
    if (!type.ok()) return Annotate(type.status(), absl::StrCat("step \"", ToString(step), "\""));
    types.push_back(*std::move(type));
  }
  return types;
}

absl::StatusOr<ir::Type> Infer(const ir::OpRegistry& registry, const ir::InferCall& call) {
  ASSIGN_OR_RETURN(const Steps steps, StepsOf(call, call.size()));
  std::vector<ir::Type> types;
  for (int i = 0; i < call.size(); ++i) {
    RETURN_IF_ERROR(CheckNoCodes(call, i));
    RETURN_IF_ERROR(CheckDType(call, i, DType::kF32));
    types.push_back(*call.operands[i]);
  }
  ASSIGN_OR_RETURN(types, Types(registry, steps, std::move(types)));
  return types.back();
}

ir::Cost CostOf(const ir::OpRegistry& registry, const ir::InferCall& call, const ir::Type& result) {
  double operations = 0;
  const Steps steps = ParseElementwiseSteps(call.attribute("steps").as_strings(), call.size()).value();
  for (const ElementwiseStep& step : steps) {
    const ir::OpSchema* op = registry.FindOrNull(step.op);
    operations += op == nullptr ? 1 : op->operations_per_element;
  }
  return {0, operations * ir::NumElements(result)};
}

absl::StatusOr<std::vector<Tensor>> Evaluate(const ir::OpRegistry& registry, const ir::EvaluateCall& call) {
  ASSIGN_OR_RETURN(const Steps steps, StepsOf(call, call.size()));
  std::vector<ir::Type> types;
  for (int i = 0; i < call.size(); ++i) types.emplace_back(call.tensor(i).type());
  ASSIGN_OR_RETURN(types, Types(registry, steps, std::move(types)));
  std::vector<std::vector<Tensor>> computed;
  computed.reserve(steps.size());  // Its elements are pointed at.
  std::vector<const std::vector<Tensor>*> values = call.operands;
  for (const ElementwiseStep& step : steps) {
    std::vector<const std::vector<Tensor>*> operands;
    for (const int operand : step.operands) operands.push_back(values[operand]);
    ASSIGN_OR_RETURN(std::vector<Tensor> result, ir::Evaluate(*registry.FindOrNull(step.op), step.attributes,
                                                              std::move(operands), types[values.size()]));
    computed.push_back(std::move(result));
    values.push_back(&computed.back());
  }
  return std::move(computed.back());
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  ir::OpSchema schema;
  schema.name = "fused_elementwise";
  schema.operands = {{"inputs", /*optional=*/false, /*parameter=*/false, /*variadic=*/true}};
  schema.attributes = {{"steps", AttributeKind::kStrings, std::nullopt}};
  schema.elementwise = true;
  schema.infer = [&registry](const ir::InferCall& call) { return Infer(registry, call); };
  schema.evaluate = [&registry](const ir::EvaluateCall& call) { return Evaluate(registry, call); };
  schema.cost = [&registry](const ir::InferCall& call, const ir::Type& result) {
    return CostOf(registry, call, result);
  };
  registry.Register(std::move(schema));
}

}  // namespace fuselage::ops::fused_elementwise
