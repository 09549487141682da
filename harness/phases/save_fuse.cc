#include <vector>

#include "compiler/artifact.h"
#include "harness/phases/phases.h"
#include "ir/base/status.h"

namespace fuselage::harness::phases {

absl::Status SaveFuse(RunState& run) {
  if (run.config.save_fuse().empty()) return absl::OkStatus();
  run.progress.Begin("save the compiled network");
  std::vector<kernels::Isa> isas;
  for (const std::string& name : run.config.pack()) {
    const absl::StatusOr<kernels::Isa> isa = kernels::IsaFromName(name);
    if (!isa.ok()) return UsageError(absl::StrCat("pack: ", isa.status().message()));
    isas.push_back(*isa);
  }
  if (isas.empty()) isas.push_back(kernels::BestIsa());
  const compiler::LoadedGraph network{run.graph->Clone(), run.names, run.model_warnings, run.pass_reports};
  return compiler::WriteArtifact(network, run.library.kernels, isas,
                                 run.request.search.InCaller(run.config.save_fuse()));
}

}  // namespace fuselage::harness::phases
