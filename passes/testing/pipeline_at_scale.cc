#include "passes/testing/pipeline_at_scale.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "ir/ops/register_all.h"
#include "ir/testing/resnet_graph.h"
#include "kernels/register_all.h"
#include "passes/register_all.h"

namespace fuselage::testing {
namespace {

// One tensor for each type, whatever the node.
class SeededRunner : public passes::Runner {
 public:
  absl::Status ForEachSample(
      const ir::Graph&, absl::Span<const ir::Node* const> nodes,
      const std::function<absl::Status(int sample, absl::Span<const Tensor* const> values)>& visit) override {
    std::map<Shape, Tensor> tensors;
    std::vector<const Tensor*> values;
    for (const ir::Node* node : nodes) {
      const auto [it, added] = tensors.try_emplace(node->tensor_type().shape);
      if (added) it->second = SeededTensor(node->tensor_type(), 1);
      values.push_back(&it->second);
    }
    for (int sample = 0; sample < 2; ++sample) RETURN_IF_ERROR(visit(sample, values));
    return absl::OkStatus();
  }
};

}  // namespace

PipelineAtScale::PipelineAtScale() : runner_(std::make_unique<SeededRunner>()) {
  ops::RegisterAll(ops_);
  passes::RegisterAll(passes_);
  kernels::RegisterAll(kernels_);
  environment_.runner = runner_.get();
  environment_.kernels = &kernels_;
  for (const char* pass : {"Normalize", "ConvBn", "Fusion", "Quantize", "QuantLift", "Lower", "Cleanup"}) {
    config_.add_steps()->mutable_pass()->set_type_url(absl::StrCat("type.googleapis.com/fuselage.", pass, "Options"));
  }
}

PipelineAtScale::~PipelineAtScale() = default;

std::unique_ptr<ir::Graph> PipelineAtScale::MakeGraph(int64_t nodes) const { return ResNetGraph(nodes, ops_); }

absl::StatusOr<std::vector<passes::PassReport>> PipelineAtScale::Run(ir::Graph& graph) const {
  return passes::RunPipeline(config_, passes_, environment_, graph);
}

}  // namespace fuselage::testing
