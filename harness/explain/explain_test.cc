// Tables of graphs, and where ops run, on graphs of a few nodes.
#include "harness/explain/explain.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harness/explain/graph_history.h"
#include "harness/explain/graph_table.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/text.h"

namespace fuselage::harness {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ExplainTest : public ::testing::Test {
 protected:
  ExplainTest() { ops::RegisterAll(ops_); }

  std::unique_ptr<ir::Graph> Parsed(const std::string& text) {
    absl::StatusOr<std::unique_ptr<ir::Graph>> graph = ir::Parse(text, ops_);
    EXPECT_OK(graph);
    return graph.ok() ? *std::move(graph) : nullptr;
  }

  ir::OpRegistry ops_;
};

constexpr char kUnfused[] = R"(graph @g {
  param @w: f32[2,2] = [1, 2, 3, 4]
  module @fc = linear(weight=@w)
  module @r = relu()
  %x: f32[1,2] = placeholder
  %y: f32[1,2] = call_module @fc(%x)
  %z: f32[1,2] = call_module @r(%y)
  %a: f32[1,2] = call_function add(%z, %x, alpha=2.0)
  output(%a)
})";
constexpr char kFused[] = R"(graph @g {
  param @w: f32[2,2] = [1, 2, 3, 4]
  module @fc = linear(activation="relu", weight=@w)
  %x: f32[1,2] = placeholder
  %y: f32[1,2] = call_module @fc(%x) from(y, z)
  %b: f32[1,2] = call_function sigmoid(%y)
  %a: f32[1,2] = call_function add(%b, %x, alpha=2.0)
  output(%a)
})";

TEST_F(ExplainTest, AGraphAsRows) {
  const Results::GraphTable table = TableOf(*Parsed(kUnfused), "input");
  EXPECT_EQ(table.after(), "input");
  EXPECT_EQ(table.nodes(), 5);
  ASSERT_EQ(table.rows_size(), 5);
  EXPECT_EQ(table.rows(0).kind(), "placeholder");
  EXPECT_EQ(table.rows(0).target(), "x");
  EXPECT_THAT(table.rows(0).users(), ElementsAre("y", "a"));
  EXPECT_EQ(table.rows(1).kind(), "call_module");
  EXPECT_EQ(table.rows(1).target(), "fc = linear");
  EXPECT_EQ(table.rows(3).target(), "add(alpha=2.0)");
  EXPECT_THAT(table.rows(3).inputs(), ElementsAre("z", "x"));
  EXPECT_EQ(table.rows(4).name(), "output");
  EXPECT_EQ(table.rows(4).target(), "output");
}

TEST_F(ExplainTest, ChangesAgainstTheTableBefore) {
  const Results::GraphTable before = TableOf(*Parsed(kUnfused), "input");
  Results::GraphTable after = TableOf(*Parsed(kFused), "fusion");
  MarkChanges(before, &after);
  EXPECT_THAT(after.removed(), ElementsAre("z"));
  EXPECT_EQ(after.rows(0).change(), "") << "its users changed, not it";
  EXPECT_EQ(after.rows(1).change(), "changed");
  EXPECT_THAT(after.rows(1).sources(), ElementsAre("y", "z"));
  EXPECT_EQ(after.rows(1).target(), "fc = linear(activation=\"relu\")");
  EXPECT_EQ(after.rows(2).change(), "new");
  EXPECT_EQ(after.rows(3).change(), "changed") << "another input";

  Results::GraphTable same = TableOf(*Parsed(kUnfused), "cse");
  MarkChanges(before, &same);
  EXPECT_THAT(same.removed(), IsEmpty());
  for (const auto& row : same.rows()) EXPECT_EQ(row.change(), "");
}

TEST_F(ExplainTest, LongGraphsLoseTheirMiddle) {
  const Results::GraphTable whole = TableOf(*Parsed(kUnfused), "input");
  EXPECT_EQ(Abridged(whole, 5).left_out(), 0);
  const Results::GraphTable table = Abridged(whole, 3);
  EXPECT_EQ(table.nodes(), 5);
  EXPECT_EQ(table.left_out(), 2);
  ASSERT_EQ(table.rows_size(), 3);
  EXPECT_EQ(table.rows(1).name(), "y");
  EXPECT_EQ(table.rows(2).name(), "output");
}

TEST_F(ExplainTest, AHistoryWritesEachNodeOnce) {
  const auto unfused = Parsed(kUnfused), fused = Parsed(kFused);
  Results::GraphHistory history;
  GraphHistoryBuilder builder;
  builder.Add(*unfused, "input", &history);
  builder.Add(*unfused, "cse", &history);  // Changed nothing.
  builder.Add(*fused, "fusion", &history);
  builder.Add(*unfused, "undo", &history);
  ASSERT_EQ(history.steps_size(), 3);
  EXPECT_EQ(history.steps(1).after(), "fusion");
  EXPECT_THAT(history.steps(0).nodes(), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(history.steps(1).nodes(), ElementsAre(0, 5, 6, 7, 4)) << "%x and the output stay";
  EXPECT_THAT(history.steps(2).nodes(), ElementsAre(0, 1, 2, 3, 4));
  ASSERT_EQ(history.nodes_size(), 8);
  const auto& fc = history.nodes(5);
  EXPECT_EQ(fc.name(), "y");
  EXPECT_EQ(fc.kind(), "call_module");
  EXPECT_EQ(fc.op(), "linear");
  EXPECT_EQ(fc.target(), "fc = linear(activation=\"relu\")");
  EXPECT_EQ(fc.type(), "f32[1,2]");
  EXPECT_THAT(fc.inputs(), ElementsAre("x"));
  EXPECT_THAT(fc.sources(), ElementsAre("y", "z"));
  EXPECT_THAT(fc.weights(), ElementsAre("weight f32[2,2]"));
}

TEST_F(ExplainTest, AHistoryCountsTheScalesOfChannels) {
  const auto graph = Parsed(R"(graph @g {
  param @w: i8[2,3]<axis=0, scale=[0.5, 0.25]> = seed(1)
  module @fc = int8.linear(out_dtype=f32, weight=@w)
  %x: u8[1,3]<scale=0.5, zp=3> = placeholder
  %y: f32[1,2] = call_module @fc(%x)
  output(%y)
})");
  Results::GraphHistory history;
  GraphHistoryBuilder().Add(*graph, "input", &history);
  EXPECT_EQ(history.nodes(0).type(), "u8[1,3]<scale=0.5, zp=3>");
  EXPECT_THAT(history.nodes(1).weights(), ElementsAre("weight i8[2,3]<axis=0, 2 scales, 0.25 to 0.5>"));
}

// f32 -> codes -> INT8 linear -> floats -> a linear that was left alone, and one INT8 linear that writes floats itself.
constexpr char kMixed[] = R"(graph @g {
  param @v: f32[3,4] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
  param @w: i8[4,8]<scale=0.5> = seed(1)
  module @fc1 = int8.linear(out_scale=0.5, weight=@w)
  module @fc2 = linear(weight=@v)
  module @fc3 = int8.linear(out_dtype=f32, weight=@w)
  %x: f32[2,8] = placeholder
  %q: u8[2,8]<scale=0.5> = call_function int8.quantize(%x, out_scale=0.5)
  %fc1: u8[2,4]<scale=0.5> = call_module @fc1(%q)
  %flat: u8[2,4]<scale=0.5> = call_function flatten(%fc1)
  %d: f32[2,4] = call_function int8.dequantize(%flat)
  %fc2: f32[2,3] = call_module @fc2(%d) from(old_fc2)
  %tanh: f32[2,3] = call_function tanh(%fc2)
  %fc3: f32[2,4] = call_module @fc3(%q)
  output(%tanh, %fc3)
})";

runtime::StepProfile Step(const std::string& node, const std::string& op, const std::string& variant, int64_t bytes) {
  runtime::StepProfile step;
  step.node = node;
  step.op = op;
  if (variant == "reference") step.kind = runtime::StepKind::kReference;
  step.variant = variant;
  step.bytes = bytes;
  return step;
}

TEST_F(ExplainTest, WhereOpsRunAndWhatCrossingCosts) {
  const auto graph = Parsed(kMixed);
  const std::vector<runtime::StepProfile> steps = {
      Step("q", "int8.quantize", "avx2", 80),        Step("fc1", "int8.linear", "avx2", 100),
      Step("", "reorder", "to row_major", 16),       Step("d", "int8.dequantize", "avx2", 40),
      Step("fc2", "linear", "onednn jit:avx2", 200), Step("tanh", "tanh", "reference", 48),
      Step("fc3", "int8.linear", "avx2", 300),       Step("", "copy", "copy", 8)};
  Results results;
  auto* quantize = results.add_passes();
  quantize->set_name("quantize");
  for (const auto& [kind, node, message] :
       {std::make_tuple("missed", "old_fc2", "kept by the policy"), std::make_tuple("applied", "tanh", "looked at"),
        std::make_tuple("missed", "fc1", "an earlier try"), std::make_tuple("missed", "old_fc2", "kept by the policy"),
        std::make_tuple("missed", "old_fc2", "one input, want two")}) {
    auto* decision = quantize->add_decisions();
    decision->set_kind(kind);
    decision->set_node(node);
    decision->set_message(message);
  }
  const Results::Explanation found = Explain(*graph, steps, results.passes());

  std::vector<std::string> rows;
  for (const auto& row : found.placements()) {
    rows.push_back(row.node() + "|" + row.op() + "|" + row.runs_in() + "|" + row.crossing() + "|" +
                   std::to_string(row.crossing_bytes()) + "|" + row.why());
  }
  EXPECT_THAT(rows, ElementsAre("q|int8.quantize|crossing|f32 -> u8|80|",    // 2*8*4 read, 2*8 written.
                                "fc1|int8.linear|INT8||0|",                  // Its remark is history.
                                "flat|flatten|INT8||0|",                     // A view: no step.
                                "|reorder|layout||0|",                       //
                                "d|int8.dequantize|crossing|u8 -> f32|40|",  // 2*4 read, 2*4*4 written.
                                // By its source's name, each reason once.
                                "fc2|linear|FP32||0|quantize: kept by the policy; quantize: one input, want two",
                                "tanh|tanh|reference||0|",                                  //
                                "fc3|int8.linear|INT8|u8 -> f32|32|", "|copy|layout||0|"))  // 2*4*4 written.
      << found.DebugString();
  EXPECT_EQ(found.placements(2).kernel(), "");
  EXPECT_EQ(found.placements(5).kernel(), "onednn jit:avx2");
  EXPECT_EQ(found.ops(), 5);
  EXPECT_EQ(found.int8_ops(), 3);
  EXPECT_EQ(found.fp32_ops(), 1);
  EXPECT_EQ(found.reference_ops(), 1);
  EXPECT_EQ(found.bytes(), 792);
  EXPECT_EQ(found.crossing_bytes(), 152);
}

TEST_F(ExplainTest, CodesWithAScaleForEachRow) {
  const auto graph = Parsed(R"(graph @rows {
  param @w: i8[4,8]<scale=0.5> = seed(1)
  module @fc = int8.linear(out_dtype=f32, weight=@w)
  %x: f32[2,8] = placeholder
  %rows: (i8[2,8], f32[2,1]) = call_function dynamic_quantize_symmetric(%x, dims=[-1])
  %q: i8[2,8] = call_function getitem(%rows, index=0)
  %s: f32[2,1] = call_function getitem(%rows, index=1)
  %fc: f32[2,4] = call_module @fc(%q, %s)
  output(%fc)
}
)");
  const Results::Explanation found = Explain(*graph, {Step("fc", "int8.linear", "avx2", 96)}, {});
  const auto& row = found.placements(found.placements_size() - 1);
  EXPECT_EQ(row.runs_in(), "INT8");
  EXPECT_EQ(row.crossing(), "i8 -> f32");
  EXPECT_EQ(row.crossing_bytes(), 32);
}

TEST_F(ExplainTest, BytesAreNoFloats) {
  const auto graph = Parsed(R"(graph @bytes {
  param @q.table: u8[3,256] = seed(1)
  module @q = int8.lookup(out_scale=0.5, table=@q.table)
  %x: u8[1,4,4,3] = placeholder
  %p: u8[1,3,4,4] = call_function permute(%x, dims=[0, 3, 1, 2])
  %q: u8[1,3,4,4]<scale=0.5> = call_module @q(%p)
  output(%q)
}
)");
  const Results::Explanation found = Explain(*graph, {Step("q", "int8.lookup", "scalar", 96)}, {});
  ASSERT_EQ(found.placements_size(), 2);
  for (const auto& row : found.placements()) EXPECT_EQ(row.runs_in(), "INT8") << row.op();
  EXPECT_EQ(found.crossing_bytes(), 0);
}

}  // namespace
}  // namespace fuselage::harness
