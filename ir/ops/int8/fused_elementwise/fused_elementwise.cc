#include "ir/ops/int8/fused_elementwise/fused_elementwise.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/base/elementwise.h"
#include "ir/ops/core/broadcast.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"
#include "ir/ops/int8/core/arithmetic.h"

namespace fuselage::ops::int8::fused_elementwise {
namespace {

using Program = std::vector<ElementwiseInstruction>;
using MakeProgram = absl::StatusOr<Program> (*)(const ir::OpCall& call, int num_operands);

absl::StatusOr<Program> FromSteps(const ir::OpCall& call, int num_operands) {
  ASSIGN_OR_RETURN(const std::vector<ElementwiseStep> steps,
                   ParseElementwiseSteps(call.attribute("steps").as_strings(), num_operands));
  return CompileElementwise(steps);
}

// int8.<op> as one step.
absl::StatusOr<Program> FromOp(const ir::OpCall& call, int num_operands) {
  ElementwiseStep step{call.schema().name.substr(5), {}, {}};
  for (int i = 0; i < num_operands; ++i) step.operands.push_back(i);
  for (const ir::AttributeSpec& spec : call.schema().attributes) {
    if (spec.name.rfind("out_", 0) != 0) step.attributes.emplace(spec.name, call.attribute(spec.name));
  }
  return CompileElementwise({step});
}

absl::StatusOr<ir::Type> Infer(const ir::InferCall& call, MakeProgram make_program) {
  RETURN_IF_ERROR(make_program(call, call.size()).status());
  Shape shape;
  for (int i = 0; i < call.size(); ++i) {
    RETURN_IF_ERROR(CheckCodes(call, i));
    ASSIGN_OR_RETURN(shape, BroadcastShapes(shape, call.tensor(i).shape));
  }
  return OutputType(call, std::move(shape));
}

absl::StatusOr<std::vector<Tensor>> Evaluate(const ir::EvaluateCall& call, MakeProgram make_program) {
  ASSIGN_OR_RETURN(const Program program, make_program(call, call.size()));
  Tensor result(call.result());
  const int64_t n = result.num_elements();
  std::vector<std::vector<float>> values;
  for (int i = 0; i < call.size(); ++i) {
    const Tensor& codes = call.tensor(i);
    const std::vector<double> centered = Centered(codes);
    std::vector<float>& value = values.emplace_back(n);
    ForEachOffset(result.shape(), BroadcastStrides(codes.shape(), result.shape()), 0, [&](int64_t k, int64_t offset) {
      value[k] = static_cast<float>(centered[offset]) * codes.type().quant->scale();
    });
  }
  for (const ElementwiseInstruction& step : program) {
    std::vector<float> value(n);
    elementwise::Apply(step, values[step.a].data(), values[step.b].data(), value.data(), n);
    values.push_back(std::move(value));
  }
  const Rounding round = RoundingOf(call.result());
  const float scale = call.result().quant->scale();
  for (int64_t k = 0; k < n; ++k) {
    const float v = values.back()[k] / scale;
    result.Set(k, round(std::isnan(v) ? 0.0f : v));
  }
  return One(std::move(result));
}

struct SingleOp {
  const char* name;
  int operands;
  std::vector<ir::AttributeSpec> attributes;
};

// As the float operators declare them (ir/ops/unary, ir/ops/binary).
std::vector<SingleOp> SingleOps() {
  const double infinity = std::numeric_limits<double>::infinity();
  const auto number = [](const char* name, double value) {
    return ir::AttributeSpec{name, AttributeKind::kFloat, value};
  };
  return {
      {"int8.clamp", 1, {number("min", -infinity), number("max", infinity)}},
      {"int8.div", 2, {}},
      {"int8.gelu", 1, {{"approximate", AttributeKind::kString, "none"}}},
      {"int8.hardsigmoid", 1, {number("alpha", 1.0 / 6), number("beta", 0.5)}},
      {"int8.hardswish", 1, {}},
      {"int8.leaky_relu", 1, {number("negative_slope", 0.01)}},
      {"int8.mul", 2, {}},
      {"int8.prelu", 2, {}},
      {"int8.sigmoid", 1, {}},
      {"int8.silu", 1, {}},
      {"int8.sub", 2, {}},
      {"int8.tanh", 1, {}},
  };
}

void Add(ir::OpRegistry& registry, ir::OpSchema schema, MakeProgram make_program) {
  for (ir::AttributeSpec& spec : OutputAttributes()) schema.attributes.push_back(std::move(spec));
  schema.quantized_form_of = schema.name.substr(sizeof("int8.") - 1);
  schema.module_form = true;
  schema.elementwise = true;
  schema.infer = [=](const ir::InferCall& call) { return Infer(call, make_program); };
  schema.evaluate = [=](const ir::EvaluateCall& call) { return Evaluate(call, make_program); };
  registry.Register(std::move(schema));
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  ir::OpSchema fused;
  fused.name = "int8.fused_elementwise";
  fused.operands = {{"inputs", /*optional=*/false, /*parameter=*/false, /*variadic=*/true}};
  fused.attributes = {{"steps", AttributeKind::kStrings, std::nullopt}};
  Add(registry, std::move(fused), FromSteps);
  for (SingleOp& op : SingleOps()) {
    ir::OpSchema schema;
    schema.name = op.name;
    schema.operands = {{"input"}};
    if (op.operands == 2) schema.operands.push_back({"other"});
    schema.unbounded_error = schema.name == "int8.div";
    schema.attributes = std::move(op.attributes);
    Add(registry, std::move(schema), FromOp);
  }
}

}  // namespace fuselage::ops::int8::fused_elementwise
