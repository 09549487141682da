// Every official ONNX test model loads and computes what its data says, or is declined with a message that names what
// is not supported. Nothing crashes. Prints how many of each.
#include "frontend/onnx/conformance.h"

#include <iostream>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "interpreter/interpreter.h"

namespace fuselage::onnx::conformance {
namespace {

absl::StatusOr<std::vector<Tensor>> Interpret(const ir::Graph& graph, absl::Span<const Tensor> inputs) {
  return interpreter::Run(graph, inputs);
}

TEST(Conformance, FirstTier) {
  int count = 0;
  for (const Tier& tier : FirstTier()) {
    for (const std::string& test : tier.tests) {
      ++count;
      const Result result = RunModel(NodeTest(test), Weights::kInputs, Interpret);
      const bool excluded = Exclusions().count(test) > 0;
      EXPECT_EQ(result.outcome, excluded ? Outcome::kDeclined : Outcome::kPassed)
          << tier.op << " " << test << ": " << result.message;
    }
  }
  EXPECT_EQ(count, kFirstTier);
}

// The same with weights as parameters, which takes other paths: folding, linear layers, quantized parameters.
TEST(Conformance, FirstTierWithConstantWeights) {
  for (const Tier& tier : FirstTier()) {
    for (const std::string& test : tier.tests) {
      if (Exclusions().count(test) > 0) continue;
      const Result result = RunModel(NodeTest(test), Weights::kConstants, Interpret);
      EXPECT_EQ(result.outcome, Outcome::kPassed) << tier.op << " " << test << ": " << result.message;
    }
  }
}

// What was missing, in few words.
std::string Reason(const std::string& message) {
  for (const char* reason : {"unsupported operator", "wanted inference", "wanted it unused", "wanted a constant",
                             "depends on data", "sequence, map, optional", "wanted one of BOOL"}) {
    if (absl::StrContains(message, reason)) return reason;
  }
  return message;
}

TEST(Conformance, EveryModelPassesOrIsDeclinedByName) {
  const auto models = AllModels();
  EXPECT_EQ(models.size(), kModels);
  std::map<std::string, std::map<std::string, int>> table;  // Outcome -> folder -> count.
  int passed = 0;
  for (const auto& model : models) {
    const std::string group = std::filesystem::relative(model, kData).begin()->string();
    const Result result = RunModel(model, Weights::kInputs, Interpret);
    EXPECT_NE(result.outcome, Outcome::kFailed) << model << ": " << result.message;
    passed += result.outcome == Outcome::kPassed;
    const std::string row = result.outcome == Outcome::kPassed     ? "passed"
                            : result.outcome == Outcome::kDeclined ? "declined: " + Reason(result.message)
                                                                   : "FAILED";
    ++table[row][group];
    ++table["total"][group];
  }
  EXPECT_GE(passed, 963);
  for (const auto& [row, groups] : table) {
    std::cout << row << ":";
    for (const auto& [group, count] : groups) std::cout << " " << group << " " << count;
    std::cout << "\n";
  }
}

}  // namespace
}  // namespace fuselage::onnx::conformance
