// cleanup: what needs no computing goes. Results keep their bits.
//
//   op(constants)                                                  =>  get_attr of the result
//   identity(x), dropout(x) in evaluation, to(x) of x's own type   =>  x
//   reshape, flatten, squeeze, unsqueeze, expand to its own shape  =>  x
//   permute, transpose to the same order; slice of everything      =>  x
//   pad by nothing, cat(x)                                         =>  x
//   x * 1, x / 1, x - 0 (one of them a constant)                   =>  x
//   two get_attrs of one parameter                                 =>  the first
//
// and nodes, modules and parameters without users go, as after every pass.
//
// Declines: folding a dequantize, which marks a quantized weight; dropout in training mode; results over the size
// budget; x + 0, which turns -0 into +0.
#ifndef FUSELAGE_PASSES_CLEANUP_CLEANUP_H_
#define FUSELAGE_PASSES_CLEANUP_CLEANUP_H_

#include "absl/strings/string_view.h"
#include "passes/cleanup/cleanup.pb.h"
#include "passes/core/pass.h"
#include "passes/core/registry.h"

namespace fuselage::cleanup {

class Cleanup : public passes::Pass {
 public:
  explicit Cleanup(CleanupOptions options) : options_(std::move(options)) {}

  absl::string_view name() const override { return "cleanup"; }

 protected:
  absl::StatusOr<bool> RunImpl(ir::Graph& graph, passes::Remarks& remarks) const override;

 private:
  CleanupOptions options_;
};

// InvalidArgument where the budget is negative.
void Register(passes::PassRegistry& registry);

}  // namespace fuselage::cleanup

#endif  // FUSELAGE_PASSES_CLEANUP_CLEANUP_H_
