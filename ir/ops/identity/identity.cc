#include "ir/ops/identity/identity.h"

#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"

namespace fuselage::ops::identity {
namespace {

absl::StatusOr<std::vector<Tensor>> Same(const ir::EvaluateCall& call) { return One(call.tensor(0)); }

absl::StatusOr<ir::Type> InferDropout(const ir::InferCall& call) {
  const double p = call.GetFloat("p");
  if (!(p >= 0 && p <= 1)) return AttributeError(call, "p", "a probability");
  return *call.operands[0];
}

absl::StatusOr<std::vector<Tensor>> EvaluateDropout(const ir::EvaluateCall& call) {
  if (call.GetBool("training") && call.GetFloat("p") > 0) {
    return absl::UnimplementedError("dropout in training mode has a random result");
  }
  return Same(call);
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  ir::OpSchema identity;
  identity.name = "identity";
  identity.aliases = {"contiguous", "detach", "torch.detach"};
  identity.operands = {{"input"}};
  identity.elementwise = true;
  identity.view = ir::View::kSameOrder;
  identity.infer = [](const ir::InferCall& call) -> absl::StatusOr<ir::Type> { return *call.operands[0]; };
  identity.evaluate = Same;
  registry.Register(std::move(identity));

  // No alias: torch.nn.functional.dropout is in training mode by default.
  ir::OpSchema dropout;
  dropout.name = "dropout";
  dropout.operands = {{"input"}};
  dropout.attributes = {{"p", AttributeKind::kFloat, 0.5}, {"training", AttributeKind::kBool, false}};
  dropout.elementwise = true;
  dropout.infer = InferDropout;
  dropout.evaluate = EvaluateDropout;
  registry.Register(std::move(dropout));
}

}  // namespace fuselage::ops::identity
