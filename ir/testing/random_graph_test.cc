#include "ir/testing/random_graph.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "interpreter/interpreter.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/text.h"

namespace fuselage::testing {
namespace {

using ir::Node;
using ir::NodeKind;

constexpr int kSeeds = 400;
constexpr int kManySeeds = 4000;  // Where each of some two hundred ops must show up.

class RandomGraphTest : public ::testing::Test {
 protected:
  RandomGraphTest() { ops::RegisterAll(ops_); }

  std::unique_ptr<ir::Graph> MakeGraph(uint64_t seed) const {
    RandomGraphOptions options;
    options.round_arithmetic = seed % 2 == 1;
    options.quantized = seed % 3 != 0;
    return RandomGraph(seed, ops_, options);
  }

  ir::OpRegistry ops_;
};

TEST_F(RandomGraphTest, IsAFunctionOfItsSeed) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const std::string text = ir::Print(*MakeGraph(seed));
    EXPECT_EQ(ir::Print(*MakeGraph(seed)), text);
    EXPECT_NE(ir::Print(*MakeGraph(seed + 6)), text);
  }
}

TEST_F(RandomGraphTest, IsItsText) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::unique_ptr<ir::Graph> graph = MakeGraph(seed);
    const std::string text = ir::Print(*graph);
    const ir::ParameterSource source = [&](absl::string_view name) { return graph->FindParameterOrNull(name)->tensor; };
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ir::Graph> parsed, ir::Parse(text, ops_, "<text>", source));
    EXPECT_EQ(ir::Print(*parsed), text);
  }
}

TEST_F(RandomGraphTest, ComputesFiniteValues) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::unique_ptr<ir::Graph> graph = MakeGraph(seed);
    std::vector<Tensor> inputs;
    for (const Node* node : graph->placeholders()) inputs.push_back(SeededTensor(node->tensor_type(), inputs.size()));
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs, interpreter::Run(*graph, inputs));
    for (const Tensor& output : outputs) {
      for (int64_t i = 0; i < output.num_elements(); ++i) ASSERT_TRUE(std::isfinite(output.At(i))) << "seed " << seed;
    }
  }
}

TEST_F(RandomGraphTest, EveryOpOccursInSeveralGraphs) {
  std::map<std::string, std::set<uint64_t>> seeds;
  for (uint64_t seed = 0; seed < kManySeeds; ++seed) {
    const std::unique_ptr<ir::Graph> graph = MakeGraph(seed);
    for (const Node* node = graph->first(); node != nullptr; node = node->next()) {
      if (node->op() != nullptr) seeds[node->op()->name].insert(seed);
    }
  }
  for (const ir::OpSchema* op : ops_.SortedByName()) {
    EXPECT_GE(seeds[op->name].size(), 2) << op->name << ": give it a recipe in ir/testing/recipes";
  }
}

TEST_F(RandomGraphTest, EverySpellingOccurs) {
  std::set<std::string> targets;
  for (uint64_t seed = 0; seed < kManySeeds; ++seed) {
    const std::unique_ptr<ir::Graph> graph = MakeGraph(seed);
    for (const Node* node = graph->first(); node != nullptr; node = node->next()) {
      if (node->op() != nullptr && node->module() == nullptr) targets.insert(node->target());
    }
  }
  int missing = 0, all = 0;
  for (const ir::OpSchema* op : ops_.SortedByName()) {
    for (const std::string& alias : op->aliases) {
      ++all;
      missing += targets.count(alias) == 0;
    }
  }
  EXPECT_LE(missing, all / 10) << "of " << all << " aliases";
}

// What passes must mind, each in a good part of the graphs.
TEST_F(RandomGraphTest, ShapesThatPassesMustMind) {
  std::map<std::string, int> graphs;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::unique_ptr<ir::Graph> graph = MakeGraph(seed);
    std::set<std::string> found;
    if (graph->placeholders().size() > 1) found.insert("several placeholders");
    if (graph->output()->num_operands() > 1) found.insert("several outputs");
    for (const auto& [path, module] : graph->modules()) {
      if (module->call_sites.size() > 1) found.insert("a shared module");
    }
    for (const auto& [name, parameter] : graph->parameters()) {
      if (parameter.uses > 1) found.insert("a shared parameter");
    }
    for (const Node* node = graph->first(); node != nullptr; node = node->next()) {
      if (node->is_call() && node->num_uses() == 0) found.insert("a dead call");
      if (node->is_call() && node->num_uses() > 1) found.insert("a call with several uses");
      if (node->IsOp("add") && node->operand(0)->IsOp("batch_norm")) found.insert("a residual add");
      if (node->IsOp("quantize") && node->operand(0)->op() != nullptr &&
          node->operand(0)->op()->view != ir::View::kNone) {
        found.insert("a view under a quantize");
      }
      if (node->kind() == NodeKind::kCallMethod) found.insert("a method");
    }
    for (const std::string& shape : found) ++graphs[shape];
  }
  for (const char* shape :
       {"several placeholders", "several outputs", "a shared module", "a shared parameter", "a dead call",
        "a call with several uses", "a residual add", "a view under a quantize", "a method"}) {
    EXPECT_GE(graphs[shape], kSeeds / 10) << shape;
  }
}

}  // namespace
}  // namespace fuselage::testing
