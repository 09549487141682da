#include "ir/ops/int8/global_avg_pool_linear/global_avg_pool_linear.h"

#include <utility>

#include "ir/ops/int8/core/part.h"
#include "ir/ops/int8/linear/linear.h"
#include "ir/ops/int8/pool/pool.h"
#include "ir/ops/linear/linear.h"

namespace fuselage::ops::int8::global_avg_pool_linear {
namespace {

// [N, C, 1...] as the rows [N, C] of the layer's input.
TensorType AsRows(TensorType pooled) {
  pooled.shape.resize(2);
  return pooled;
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  const Part pool(pool::Register, "int8.global_avg_pool", "pool_");
  const Part linear(linear::Register, "int8.linear");
  ir::OpSchema schema;
  schema.name = "int8.global_avg_pool_linear";
  schema.operands = ops::linear::LinearSchema().operands;
  schema.attributes = linear.Attributes();
  for (ir::AttributeSpec& attribute : pool.Attributes()) schema.attributes.push_back(std::move(attribute));
  schema.module_form = true;
  schema.itemwise = true;
  schema.float_result = true;
  schema.infer = [pool, linear](const ir::InferCall& call) -> absl::StatusOr<ir::Type> {
    std::vector<const ir::Type*> operands = call.operands;
    ASSIGN_OR_RETURN(const ir::Type pooled, pool.Infer(call, {operands[0]}));
    const ir::Type rows = AsRows(pooled.tensor());
    operands[0] = &rows;
    return linear.Infer(call, operands);
  };
  schema.evaluate = [pool, linear](const ir::EvaluateCall& call) -> absl::StatusOr<std::vector<Tensor>> {
    std::vector<const std::vector<Tensor>*> operands = call.operands;
    ASSIGN_OR_RETURN(std::vector<Tensor> pooled, pool.Evaluate(call, {operands[0]}));
    pooled[0].set_type(AsRows(pooled[0].type()));
    operands[0] = &pooled;
    return linear.Evaluate(call, operands);
  };
  schema.cost = [pool, linear, &registry](const ir::InferCall& call, const ir::Type& result) {
    const ir::Type pooled = pool.Infer(call, {call.operands[0]}).value();
    return pool.CostOf(registry, call, {call.operands[0]}, pooled) +
           linear.CostOf(registry, call, call.operands, result);
  };
  registry.Register(std::move(schema));
}

}  // namespace fuselage::ops::int8::global_avg_pool_linear
