// relu(relu(x))  =>  relu(x)
//
// Exact. Declines nothing.
#ifndef DOUBLE_RELU_DOUBLE_RELU_H_
#define DOUBLE_RELU_DOUBLE_RELU_H_

#include "passes/core/pass.h"
#include "passes/core/registry.h"

namespace double_relu {

class DoubleRelu : public fuselage::passes::Pass {
 public:
  absl::string_view name() const override { return "double_relu"; }

 protected:
  absl::StatusOr<bool> RunImpl(fuselage::ir::Graph& graph, fuselage::passes::Remarks& remarks) const override;
};

void Register(fuselage::passes::PassRegistry& registry);

}  // namespace double_relu

#endif  // DOUBLE_RELU_DOUBLE_RELU_H_
