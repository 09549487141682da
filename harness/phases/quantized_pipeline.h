// A pipeline cut in front of `quantize`, to quantize the same network in many ways.
#ifndef FUSELAGE_HARNESS_PHASES_QUANTIZED_PIPELINE_H_
#define FUSELAGE_HARNESS_PHASES_QUANTIZED_PIPELINE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/phases/candidates.h"
#include "harness/phases/run_state.h"
#include "ir/base/hash_map.h"

namespace fuselage::harness::phases {

class QuantizedPipeline {
 public:
  // Runs what comes before `quantize` on the network as read. A usage error says that `what` wants that pass among the
  // pipeline's own steps (not in a fixed point), once.
  static absl::StatusOr<QuantizedPipeline> Make(RunState& run, Candidates& candidates, absl::string_view what);

  // The network with everything in INT8 that can be, and the nodes that are, in their order.
  absl::StatusOr<Candidate> Int8();
  const std::vector<std::string>& layers() const { return layers_; }
  // The arithmetic of a layer, counted.
  double OperationsOf(const std::string& layer) const;

  // The same with these layers left in FP32, as QuantizeOptions.skip has it.
  absl::StatusOr<Candidate> Without(const std::vector<std::string>& layers);
  // With nothing else than these in INT8.
  absl::StatusOr<Candidate> Only(const std::vector<std::string>& layers);

 private:
  QuantizedPipeline() = default;

  Candidates* candidates_ = nullptr;
  std::unique_ptr<ir::Graph> float_graph_;
  PipelineConfig rest_;  // `quantize` and what follows.
  std::vector<std::string> layers_;
};

}  // namespace fuselage::harness::phases

#endif  // FUSELAGE_HARNESS_PHASES_QUANTIZED_PIPELINE_H_
