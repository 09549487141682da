// For tests: calibrates on seeded inputs through the interpreter.
#ifndef FUSELAGE_PASSES_QUANTIZE_SEEDED_RUNNER_H_
#define FUSELAGE_PASSES_QUANTIZE_SEEDED_RUNNER_H_

#include <vector>

#include "interpreter/interpreter.h"
#include "passes/core/pass.h"

namespace fuselage::quantize {

// The inputs of sample 0 are those that the runner of text cases compares on.
inline std::vector<Tensor> SeededInputs(const ir::Graph& graph, int sample) {
  std::vector<Tensor> inputs;
  uint64_t seed = 1;
  for (const ir::Node* input : graph.placeholders()) {
    inputs.push_back(SeededTensor(input->tensor_type(), seed++ + 100 * sample));
  }
  return inputs;
}

class SeededRunner : public passes::Runner {
 public:
  explicit SeededRunner(int samples = 4) : samples_(samples) {}

  int visited() const { return visited_; }  // In all runs so far.

  absl::Status ForEachSample(
      const ir::Graph& graph, absl::Span<const ir::Node* const> nodes,
      const std::function<absl::Status(int sample, absl::Span<const Tensor* const> values)>& visit) override {
    for (int sample = 0; sample < samples_; ++sample) {
      ++visited_;
      std::vector<Tensor> copies(nodes.size());
      const auto observe = [&](const ir::Node& node, absl::Span<const Tensor> value) {
        for (size_t i = 0; i < nodes.size(); ++i) {
          if (nodes[i] == &node) copies[i] = value[0];
        }
        return absl::OkStatus();
      };
      RETURN_IF_ERROR(interpreter::Run(graph, SeededInputs(graph, sample), observe).status());
      std::vector<const Tensor*> values;
      for (const Tensor& copy : copies) values.push_back(&copy);
      RETURN_IF_ERROR(visit(sample, values));
    }
    return absl::OkStatus();
  }

 private:
  const int samples_;
  int visited_ = 0;
};

}  // namespace fuselage::quantize

#endif  // FUSELAGE_PASSES_QUANTIZE_SEEDED_RUNNER_H_
