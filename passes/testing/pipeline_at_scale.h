// The whole pipeline on a deep network: for its benchmark and its scaling test.
#ifndef FUSELAGE_PASSES_TESTING_PIPELINE_AT_SCALE_H_
#define FUSELAGE_PASSES_TESTING_PIPELINE_AT_SCALE_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/graph.h"
#include "kernels/core/registry.h"
#include "passes/core/pipeline.h"

namespace fuselage::testing {

// Holds what RunPipeline needs, with a runner that shows seeded values in place of running the network: the passes'
// own time is what counts.
class PipelineAtScale {
 public:
  PipelineAtScale();
  ~PipelineAtScale();

  std::unique_ptr<ir::Graph> MakeGraph(int64_t nodes) const;

  // normalize, conv_bn, fusion, quantize, quant_lift, lower, cleanup.
  absl::StatusOr<std::vector<passes::PassReport>> Run(ir::Graph& graph) const;

 private:
  ir::OpRegistry ops_;
  passes::PassRegistry passes_;
  kernels::KernelRegistry kernels_;
  std::unique_ptr<passes::Runner> runner_;
  passes::PassEnvironment environment_;
  PipelineConfig config_;
};

}  // namespace fuselage::testing

#endif  // FUSELAGE_PASSES_TESTING_PIPELINE_AT_SCALE_H_
