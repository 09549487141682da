// Common-subexpression elimination.
//
//   a = f(x); b = f(x)  =>  a = f(x), and b's users read a
//
// Two calls are the same when op, attributes, parameters and operands are. Exact.
// Declines: dropout in training mode, which is not a function of its operands.
#ifndef FUSELAGE_PASSES_CSE_CSE_H_
#define FUSELAGE_PASSES_CSE_CSE_H_

#include "passes/core/pass.h"
#include "passes/core/registry.h"

namespace fuselage::cse {

class Cse : public passes::Pass {
 public:
  absl::string_view name() const override { return "cse"; }

 protected:
  absl::StatusOr<bool> RunImpl(ir::Graph& graph, passes::Remarks& remarks) const override;
};

void Register(passes::PassRegistry& registry);

}  // namespace fuselage::cse

#endif  // FUSELAGE_PASSES_CSE_CSE_H_
