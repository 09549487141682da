#include "ir/ops/int8/norm/norm.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/cost.h"
#include "ir/ops/core/values.h"
#include "ir/ops/dynamic_quantize/dynamic_quantize.h"
#include "ir/ops/int8/core/part.h"
#include "ir/ops/int8/quantize/quantize.h"
#include "ir/ops/layer_norm/layer_norm.h"

namespace fuselage::ops::int8::norm {
namespace {

constexpr int kInput = 0;

struct Parts {
  explicit Parts(const char* op)
      : dequantize(quantize::Register, "int8.dequantize"),
        norm(layer_norm::Register, op),
        quantize(quantize::Register, "int8.quantize"),
        dynamic_quantize(dynamic_quantize::Register, "dynamic_quantize_symmetric") {}

  int residual() const { return static_cast<int>(norm.schema().operands.size()); }
  // What the result comes from.
  const Part& last(const ir::OpCall& call) const { return call.GetInts("dims").empty() ? quantize : dynamic_quantize; }

  Part dequantize, norm, quantize, dynamic_quantize;
};

template <typename Operand>
std::vector<Operand> NormOperands(const Parts& parts, const std::vector<Operand>& operands, Operand x) {
  std::vector<Operand> own = operands;
  if (static_cast<int>(own.size()) > parts.residual()) own.resize(parts.residual());
  own[kInput] = x;
  return own;
}

absl::StatusOr<ir::Type> Infer(const Parts& parts, const ir::InferCall& call) {
  const TensorType& input = call.tensor(kInput);
  ir::Type x = input;
  if (input.quant) {
    ASSIGN_OR_RETURN(x, parts.dequantize.Infer(call, {call.operands[kInput]}));
  }
  if (call.has(parts.residual()) && (input.dtype != DType::kF32 || call.tensor(parts.residual()) != input)) {
    return OperandError(call, parts.residual(), absl::StrCat("wanted f32 as the input, which is ", ToString(input)));
  }
  if (!call.GetInts("dims").empty()) {
    for (const ir::AttributeSpec& spec : parts.quantize.schema().attributes) {
      if (call.attribute(spec.name) != *spec.default_value) return AttributeError(call, spec.name, "none beside dims");
    }
  }
  ASSIGN_OR_RETURN(const ir::Type normalized,
                   parts.norm.Infer(call, NormOperands<const ir::Type*>(parts, call.operands, &x)));
  ASSIGN_OR_RETURN(ir::Type result, parts.last(call).Infer(call, {&normalized}));
  if (!call.has(parts.residual())) return result;
  std::vector<TensorType> results = result.elements();
  results.push_back(input);
  return ir::Type::Tuple(std::move(results));
}

absl::StatusOr<std::vector<Tensor>> Evaluate(const Parts& parts, const ir::EvaluateCall& call) {
  std::vector<Tensor> x = {call.tensor(kInput)};
  if (x[0].type().quant) {
    ASSIGN_OR_RETURN(x, parts.dequantize.Evaluate(call, {&x}));
  }
  const bool adds = call.has(parts.residual());
  if (adds) {
    const float* residual = call.tensor(parts.residual()).data<float>();
    for (int64_t i = 0; i < x[0].num_elements(); ++i) x[0].data<float>()[i] += residual[i];
  }
  ASSIGN_OR_RETURN(const std::vector<Tensor> normalized,
                   parts.norm.Evaluate(call, NormOperands<const std::vector<Tensor>*>(parts, call.operands, &x)));
  ASSIGN_OR_RETURN(std::vector<Tensor> results, parts.last(call).Evaluate(call, {&normalized}));
  if (adds) results.push_back(std::move(x[0]));
  return results;
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  for (const char* op : {"layer_norm", "rms_norm"}) {
    const Parts parts(op);
    ir::OpSchema schema;
    schema.name = absl::StrCat("int8.", op);
    schema.operands = parts.norm.schema().operands;
    schema.operands.push_back({"residual", /*optional=*/true});
    for (const Part* part : {&parts.norm, &parts.quantize, &parts.dynamic_quantize}) {
      for (ir::AttributeSpec& attribute : part->Attributes()) schema.attributes.push_back(std::move(attribute));
    }
    schema.module_form = true;
    schema.infer = [parts](const ir::InferCall& call) { return Infer(parts, call); };
    schema.evaluate = [parts](const ir::EvaluateCall& call) { return Evaluate(parts, call); };
    schema.operations_per_element = kQuantizeOperations;
    registry.Register(std::move(schema));
  }
}

}  // namespace fuselage::ops::int8::norm
