// For tests: the checked-in exports of frontend/fx/examples/examples.py.
#ifndef FUSELAGE_FRONTEND_FX_TESTING_H_
#define FUSELAGE_FRONTEND_FX_TESTING_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/graph.h"

namespace fuselage::fx {

// Names of all examples.
const std::vector<std::string>& ExampleNames();
// "frontend/fx/examples/<name>.ir".
std::string ExamplePath(absl::string_view name);

struct Example {
  std::unique_ptr<ir::Graph> graph;
  std::vector<Tensor> inputs, outputs;  // PyTorch's.
};
absl::StatusOr<Example> LoadExample(absl::string_view name, const ir::OpRegistry& ops);

// Do all outputs have the wanted types, and elements within 1e-5 of the output's largest magnitude? PyTorch adds in
// float, in an order of its own.
absl::Status CompareOutputs(absl::Span<const Tensor> found, absl::Span<const Tensor> wanted);

}  // namespace fuselage::fx

#endif  // FUSELAGE_FRONTEND_FX_TESTING_H_
