// Every pass on calls of rank 0 and with dimensions of 0 and 1, alone and followed by what passes fold into them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ir/ops/register_all.h"
#include "ir/testing/degenerate_graphs.h"
#include "ir/text.h"
#include "kernels/register_all.h"
#include "passes/register_all.h"
#include "passes/testing/properties.h"
#include "passes/testing/rounding.h"

namespace fuselage::testing {
namespace {

using ir::Node;

// In the order of a pipeline, with their default options but for the observer, of which rounding.h says why.
constexpr const char* kPasses[] = {"Normalize", "ConvBn",     "Fusion",  "Quantize", "QuantLift",
                                   "Lower",     "Int8Fusion", "Cleanup", "Cse"};

class Pipeline {
 public:
  Pipeline() : runner_(SeededRunner()) {
    ops::RegisterAll(ops_);
    passes::PassRegistry registry;
    passes::RegisterAll(registry);
    kernels::RegisterAll(kernels_);
    passes::PassEnvironment environment;
    environment.runner = runner_.get();
    environment.kernels = &kernels_;
    for (const char* name : kPasses) {
      google::protobuf::Any options;
      options.set_type_url(absl::StrCat("type.googleapis.com/fuselage.", name, "Options"));
      if (name == absl::string_view("Quantize")) options.PackFrom(ByTheExtremes());
      passes_.push_back(*registry.Create(options, environment));
      borrowed_.push_back(passes_.back().get());
    }
  }

  const ir::OpRegistry& ops() const { return ops_; }
  absl::Status Check(ir::Graph& graph) const { return CheckPasses(borrowed_, /*rounded=*/true, graph); }

 private:
  ir::OpRegistry ops_;
  kernels::KernelRegistry kernels_;
  std::unique_ptr<passes::Runner> runner_;
  std::vector<std::unique_ptr<passes::Pass>> passes_;
  std::vector<const passes::Pass*> borrowed_;
};

const Pipeline& All() {
  static const Pipeline& all = *new Pipeline();
  return all;
}

Node* Constant(ir::Graph& graph, Shape shape) {
  Tensor tensor(DType::kF32, std::move(shape));
  for (float& value : absl::MakeSpan(tensor.data<float>(), tensor.num_elements())) value = 0.5f;
  const std::string name = graph.AddParameter("c", std::make_shared<const Tensor>(std::move(tensor)));
  return *graph.AddGetAttr(name, name, graph.output());
}

// %y => relu(batch_norm(%y) + c), or without the batch norm where the rank has no channels. False where %y is no float.
bool Extend(ir::Graph& graph) {
  Node* y = graph.FindNodeOrNull("y");
  if (!y->type().is_tensor() || y->tensor_type().dtype != DType::kF32) return false;
  Node* last = y;
  const Shape& shape = y->tensor_type().shape;
  if (shape.size() >= 2) {
    std::vector<Node*> operands = {y};
    for (int i = 0; i < 4; ++i) operands.push_back(Constant(graph, {shape[1]}));
    last = *graph.AddFunction("bn", "batch_norm", operands);
  }
  last = *graph.AddFunction("sum", "add", {last, Constant(graph, {})});
  last = *graph.AddFunction("relu", "relu", {last});
  graph.output()->set_operand(0, last);
  return true;
}

// A mean of nothing is no number, nor is a root of what is negative, and the reference evaluation declines some calls.
bool HasFiniteOutputs(const ir::Graph& graph) {
  for (const uint64_t seed : kSampleSeeds) {
    const absl::StatusOr<std::vector<Tensor>> outputs = OutputsOnSeededInputs(graph, seed);
    if (!outputs.ok()) return false;
    for (const Tensor& output : *outputs) {
      for (const double value : ToDoubles(output)) {
        if (!std::isfinite(value)) return false;
      }
    }
  }
  return true;
}

class DegenerateShapesTest : public ::testing::TestWithParam<std::string> {};

TEST_P(DegenerateShapesTest, PassesKeepWhatTheyPromise) {
  int graphs = 0;
  ForEachDegenerateCall(All().ops(), *All().ops().FindOrNull(GetParam()), [&](std::unique_ptr<ir::Graph> graph) {
    std::vector<std::unique_ptr<ir::Graph>> variants;
    variants.push_back(graph->Clone());
    if (Extend(*graph)) variants.push_back(std::move(graph));
    for (const std::unique_ptr<ir::Graph>& variant : variants) {
      if (HasFailure() || !HasFiniteOutputs(*variant)) return;
      ++graphs;
      const std::string text = ir::Print(*variant);
      const absl::Status status = All().Check(*variant);
      EXPECT_TRUE(status.ok()) << status << "\n" << text << "became\n" << ir::Print(*variant);
    }
  });
  EXPECT_GT(graphs, 0);
}

std::vector<std::string> OpNames() {
  std::vector<std::string> names;
  for (const ir::OpSchema* op : All().ops().SortedByName()) {
    if (!op->takes_tuple) names.push_back(op->name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Ops, DegenerateShapesTest, ::testing::ValuesIn(OpNames()),
                         [](const ::testing::TestParamInfo<std::string>& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

}  // namespace
}  // namespace fuselage::testing
