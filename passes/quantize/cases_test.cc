// Runs cases/*.ir with a runner that calibrates on seeded inputs through the interpreter.
#include "interpreter/interpreter.h"
#include "passes/core/case_runner.h"
#include "passes/quantize/quantize.h"

namespace {

using fuselage::Tensor;
using fuselage::ir::Graph;
using fuselage::ir::Node;

// Four samples; the first is the input that the runner of the cases compares on.
class SeededRunner : public fuselage::passes::Runner {
 public:
  absl::Status ForEachSample(
      const Graph& graph, absl::Span<const Node* const> nodes,
      const std::function<absl::Status(int sample, absl::Span<const Tensor* const> values)>& visit) override {
    for (int sample = 0; sample < 4; ++sample) {
      std::vector<Tensor> inputs;
      uint64_t seed = 1;
      for (const Node* input : graph.placeholders()) {
        inputs.push_back(fuselage::SeededTensor(input->tensor_type(), seed++ + 100 * sample));
      }
      std::vector<Tensor> copies(nodes.size());
      const auto observe = [&](const Node& node, absl::Span<const Tensor> value) {
        for (size_t i = 0; i < nodes.size(); ++i) {
          if (nodes[i] == &node) copies[i] = value[0];
        }
        return absl::OkStatus();
      };
      RETURN_IF_ERROR(fuselage::interpreter::Run(graph, inputs, observe).status());
      std::vector<const Tensor*> values;
      for (const Tensor& copy : copies) values.push_back(&copy);
      RETURN_IF_ERROR(visit(sample, values));
    }
    return absl::OkStatus();
  }
};

}  // namespace

int main(int argc, char** argv) {
  fuselage::passes::PassRegistry passes;
  fuselage::quantize::Register(passes);
  SeededRunner runner;
  fuselage::passes::PassEnvironment environment;
  environment.runner = &runner;
  return fuselage::passes::RunCases(argc, argv, passes, environment);
}
