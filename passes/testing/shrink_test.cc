#include "passes/testing/shrink.h"

#include <gtest/gtest.h>

#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/testing/random_graph.h"
#include "ir/text.h"
#include "passes/testing/properties.h"

namespace fuselage::testing {
namespace {

using ::testing::HasSubstr;

// sub(a, b) => sub(b, a), and says that nothing changes an output.
class SwapsSub : public passes::Pass {
 public:
  absl::string_view name() const override { return "swaps_sub"; }

 protected:
  absl::StatusOr<bool> RunImpl(ir::Graph& graph, passes::Remarks&) const override {
    bool changed = false;
    for (ir::Node* node : graph.Snapshot()) {
      if (!node->IsOp("sub") || node->operand(0) == node->operand(1)) continue;
      ir::Node* input = node->operand(0);
      node->set_operand(0, node->operand(1));
      node->set_operand(1, input);
      changed = true;
    }
    return changed;
  }
};

// Unlinks a relu once, but runs again where two stand in a row.
class DropsOneRelu : public passes::Pass {
 public:
  absl::string_view name() const override { return "drops_one_relu"; }

 protected:
  absl::StatusOr<bool> RunImpl(ir::Graph& graph, passes::Remarks&) const override {
    for (ir::Node* node : graph.Snapshot()) {
      if (!node->IsOp("relu") || !node->operand(0)->IsOp("relu")) continue;
      node->ReplaceAllUsesWith(node->operand(0));
      return true;
    }
    return false;
  }
};

class ShrinkTest : public ::testing::Test {
 protected:
  ShrinkTest() { ops::RegisterAll(ops_); }

  static bool Fails(const passes::Pass& pass, const ir::Graph& graph) {
    return !CheckPass(pass, /*rounded=*/false, *graph.Clone()).ok();
  }

  ir::OpRegistry ops_;
};

TEST_F(ShrinkTest, FindsTheOneCallAtFault) {
  const SwapsSub pass;
  int found = 0;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    const std::unique_ptr<ir::Graph> graph = RandomGraph(seed, ops_);
    if (!Fails(pass, *graph)) continue;
    ++found;
    const std::unique_ptr<ir::Graph> small =
        Shrink(*graph, [&](const ir::Graph& smaller) { return Fails(pass, smaller); });
    EXPECT_TRUE(Fails(pass, *small));
    EXPECT_OK(small->Verify());
    int calls = 0;
    for (const ir::Node* node = small->first(); node != nullptr; node = node->next()) calls += node->is_call();
    EXPECT_EQ(calls, 1) << ir::Print(*small);
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ir::Graph> parsed, ir::Parse(ir::Print(*small), ops_));
    EXPECT_TRUE(Fails(pass, *parsed)) << "the printed graph must fail as well";
  }
  EXPECT_GE(found, 5);
}

TEST_F(ShrinkTest, KeepsWhatTheFailureNeeds) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ir::Graph> graph, ir::Parse(R"(graph @g {
  %x: f32[4] = placeholder
  %y: f32[4] = placeholder
  %t: f32[4] = call_function tanh(%x)
  %a: f32[4] = call_function relu(%t)
  %b: f32[4] = call_function relu(%a)
  %c: f32[4] = call_function relu(%b)
  %s: f32[4] = call_function add(%c, %y)
  output(%s, %t)
}
)",
                                                                         ops_));
  const DropsOneRelu pass;
  EXPECT_THAT(std::string(CheckPass(pass, false, *graph->Clone()).status().message()),
              HasSubstr("a second run changes the graph"));
  const std::unique_ptr<ir::Graph> small =
      Shrink(*graph, [&](const ir::Graph& smaller) { return Fails(pass, smaller); });
  EXPECT_EQ(ir::Print(*small), R"(graph @g {
  %x: f32[4] = placeholder
  %a: f32[4] = call_function relu(%x)
  %b: f32[4] = call_function relu(%a)
  %c: f32[4] = call_function relu(%b)
  output(%c)
}
)");
}

TEST_F(ShrinkTest, StopsWhenItsChecksAreUsedUp) {
  const std::unique_ptr<ir::Graph> graph = RandomGraph(1, ops_);
  int checks = 0;
  Shrink(
      *graph,
      [&](const ir::Graph&) {
        ++checks;
        return true;
      },
      3);
  EXPECT_EQ(checks, 3);
}

}  // namespace
}  // namespace fuselage::testing
