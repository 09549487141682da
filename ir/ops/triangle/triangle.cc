#include "ir/ops/triangle/triangle.h"

#include <cstring>

#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"

namespace fuselage::ops::triangle {
namespace {

absl::StatusOr<ir::Type> InferTriangle(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckNoCodes(call, 0));
  RETURN_IF_ERROR(CheckMinRank(call, 0, 2));
  return ir::Type(call.tensor(0));
}

absl::StatusOr<std::vector<Tensor>> EvaluateTriangle(const ir::EvaluateCall& call) {
  const Tensor& input = call.tensor(0);
  const bool upper = call.schema().name == "triu";
  const int64_t diagonal = call.GetInt("diagonal"), size = ByteSize(input.dtype());
  const int64_t rows = input.dim(input.rank() - 2), columns = input.dim(input.rank() - 1);
  Tensor result(call.result());
  for (int64_t i = 0; i < input.num_elements(); ++i) {
    const int64_t above = i % columns - i / columns % rows;
    if (upper ? above < diagonal : above > diagonal) continue;
    std::memcpy(static_cast<char*>(result.raw_data()) + i * size, static_cast<const char*>(input.raw_data()) + i * size,
                size);
  }
  return One(std::move(result));
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  for (const char* name : {"tril", "triu"}) {
    ir::OpSchema schema;
    schema.name = name;
    schema.aliases = {std::string("torch.") + name};
    schema.operands = {{"input"}};
    schema.attributes = {{"diagonal", AttributeKind::kInt, 0}};
    schema.infer = InferTriangle;
    schema.evaluate = EvaluateTriangle;
    registry.Register(std::move(schema));
  }
}

}  // namespace fuselage::ops::triangle
