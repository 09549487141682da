// autotune: where a kernel has several variants for a call (direct, Winograd, one for each instruction set), the one
// that is fastest on this machine.
//
//   int8.conv2d(x)  =>  int8.conv2d(x; variant="avx512_vnni winograd")
//
// The kernels' own rules, which choose where nothing is asked for, are from measurements of a few machines; this pass
// measures. The network runs whole, so that caches are as they will be: once as it is, and once with each further
// variant of all calls; they take turns. Each call gets its fastest. The network with all of these then takes turns
// with the one that was, and stays where it is faster. What a call asks for is in the graph: it can be read, and
// another machine that lacks the variant goes by its rules. No variant changes a bit.
//
// Last in a pipeline, or in front of passes that leave its calls alone. Declines: a module with several call sites.
// Does nothing without a profiler.
#ifndef FUSELAGE_PASSES_AUTOTUNE_AUTOTUNE_H_
#define FUSELAGE_PASSES_AUTOTUNE_AUTOTUNE_H_

#include "absl/strings/string_view.h"
#include "kernels/core/registry.h"
#include "passes/autotune/autotune.pb.h"
#include "passes/core/pass.h"
#include "passes/core/registry.h"

namespace fuselage::autotune {

class Autotune : public passes::Pass {
 public:
  // `kernels` null: Run fails.
  Autotune(AutotuneOptions options, const kernels::KernelRegistry* kernels, passes::Profiler* profiler)
      : options_(std::move(options)), kernels_(kernels), profiler_(profiler) {}

  absl::string_view name() const override { return "autotune"; }

 protected:
  absl::StatusOr<bool> RunImpl(ir::Graph& graph, passes::Remarks& remarks) const override;

 private:
  AutotuneOptions options_;
  const kernels::KernelRegistry* kernels_;
  passes::Profiler* profiler_;
};

void Register(passes::PassRegistry& registry);

}  // namespace fuselage::autotune

#endif  // FUSELAGE_PASSES_AUTOTUNE_AUTOTUNE_H_
