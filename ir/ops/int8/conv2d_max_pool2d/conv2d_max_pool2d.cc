#include "ir/ops/int8/conv2d_max_pool2d/conv2d_max_pool2d.h"

#include <utility>

#include "ir/ops/int8/conv2d/conv2d.h"
#include "ir/ops/int8/core/part.h"
#include "ir/ops/int8/pool/pool.h"

namespace fuselage::ops::int8::conv2d_max_pool2d {

void Register(ir::OpRegistry& registry) {
  const Part conv(conv2d::Register, "int8.conv2d");
  const Part pool(pool::Register, "int8.max_pool2d", "pool_");
  ir::OpSchema schema;
  schema.name = "int8.conv2d_max_pool2d";
  schema.operands = conv.schema().operands;
  schema.operands.resize(conv.schema().OperandIndex("residual"));
  schema.attributes = conv.Attributes();
  for (ir::AttributeSpec& attribute : pool.Attributes()) schema.attributes.push_back(std::move(attribute));
  schema.module_form = true;
  schema.itemwise = true;
  schema.infer = [conv, pool](const ir::InferCall& call) -> absl::StatusOr<ir::Type> {
    ASSIGN_OR_RETURN(const ir::Type between, conv.Infer(call, call.operands));
    return pool.Infer(call, {&between});
  };
  schema.evaluate = [conv, pool](const ir::EvaluateCall& call) -> absl::StatusOr<std::vector<Tensor>> {
    ASSIGN_OR_RETURN(const std::vector<Tensor> between, conv.Evaluate(call, call.operands));
    return pool.Evaluate(call, {&between});
  };
  schema.cost = [conv, pool, &registry](const ir::InferCall& call, const ir::Type& result) {
    const ir::Type between = conv.Infer(call, call.operands).value();
    return conv.CostOf(registry, call, call.operands, between) + pool.CostOf(registry, call, {&between}, result);
  };
  registry.Register(std::move(schema));
}

}  // namespace fuselage::ops::int8::conv2d_max_pool2d
