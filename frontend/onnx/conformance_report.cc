// Runs all ONNX test models below a folder as conformance_test does, by the interpreter, and prints for each opset how
// many pass, how many are declined, and how many fail, then each model that does not pass and why:
//
//   bazel run //frontend/onnx:conformance_report -- .../site-packages/onnx/backend/test/data/node
//
// for the data of a newer package `onnx`.
#include <fstream>
#include <iostream>
#include <map>

#include "frontend/onnx/conformance.h"
#include "interpreter/interpreter.h"
#include "onnx/onnx.pb.h"

namespace fuselage::onnx::conformance {
namespace {

int OpsetOf(const std::filesystem::path& path) {
  schema::ModelProto model;
  std::ifstream file(path, std::ios::binary);
  model.ParseFromIstream(&file);
  for (const auto& import : model.opset_import()) {
    if (import.domain().empty()) return static_cast<int>(import.version());
  }
  return 0;  // Other domains alone.
}

int Report(const std::filesystem::path& folder) {
  std::map<int, std::map<Outcome, int>> table;
  std::map<Outcome, int> total;
  for (const std::filesystem::path& model : ModelsBelow(folder)) {
    const Result result = RunModel(
        model, Weights::kInputs,
        [](const ir::Graph& graph, absl::Span<const Tensor> inputs) { return interpreter::Run(graph, inputs); });
    ++table[OpsetOf(model)][result.outcome];
    ++total[result.outcome];
    if (result.outcome == Outcome::kPassed) continue;
    std::cout << (result.outcome == Outcome::kFailed ? "FAILED " : "declined ")
              << model.parent_path().filename().string() << ": " << result.message << "\n";
  }
  const auto print = [](std::map<Outcome, int>& counts) {
    std::cout << ": passed " << counts[Outcome::kPassed] << ", declined " << counts[Outcome::kDeclined] << ", failed "
              << counts[Outcome::kFailed] << "\n";
  };
  for (auto& [opset, counts] : table) {
    std::cout << "opset " << opset;
    print(counts);
  }
  std::cout << "all";
  print(total);
  return total[Outcome::kFailed] > 0;
}

}  // namespace
}  // namespace fuselage::onnx::conformance

int main(int argc, char** argv) {
  if (argc == 2) return fuselage::onnx::conformance::Report(argv[1]);
  std::cerr << "usage: conformance_report FOLDER\n";
  return 2;
}
