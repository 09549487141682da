// rewrite: rules of a config, each a pattern and its replacement in IR text (rule.h; after torch.fx.subgraph_rewriter).
//
//   relu(add(matmul(x, w), b))  =>  gemm(x, w, b, activation="relu")        for example
//
// Rules apply in their order; for each, results are tried in the graph's order, and what one match replaced no other
// sees. A replacement may be part of a later match, so a rule settles in one run.
//
// Declines: a value inside the match that is also read outside or is a graph output; a replacement whose type is
// another; operands that the replacement's op does not take. Numeric contract: `tolerance`.
#ifndef FUSELAGE_PASSES_REWRITE_REWRITE_H_
#define FUSELAGE_PASSES_REWRITE_REWRITE_H_

#include "passes/core/pass.h"
#include "passes/core/registry.h"
#include "passes/rewrite/rewrite.pb.h"

namespace fuselage::rewrite {

class Rewrite : public passes::Pass {
 public:
  explicit Rewrite(RewriteOptions options) : options_(std::move(options)) {}

  absl::string_view name() const override { return "rewrite"; }
  passes::NumericContract numeric_contract() const override {
    return {passes::NumericContract::kTolerance, options_.tolerance() > 0 ? options_.tolerance() : 1e-5,
            /*of_config=*/true};
  }

 protected:
  absl::StatusOr<bool> RunImpl(ir::Graph& graph, passes::Remarks& remarks) const override;

 private:
  RewriteOptions options_;
};

void Register(passes::PassRegistry& registry);

}  // namespace fuselage::rewrite

#endif  // FUSELAGE_PASSES_REWRITE_REWRITE_H_
