// Each pass is linear in the graph, and so is the pipeline around it.
#include <gtest/gtest.h>

#include "ir/testing/matchers.h"
#include "ir/testing/scaling.h"
#include "passes/testing/pipeline_at_scale.h"

namespace fuselage::testing {
namespace {

TEST(PipelineScalingTest, IsLinearInTheGraph) {
  const PipelineAtScale pipeline;
  const auto build = [&](int64_t nodes) { return pipeline.MakeGraph(nodes); };
  const auto run = [&](ir::Graph& graph) { EXPECT_OK(pipeline.Run(graph)); };
  EXPECT_LT(GrowthOverCopying(5000, build, run), kMostIfLinear);
}

TEST(PipelineScalingTest, EachPassHasWorkToDo) {
  const PipelineAtScale pipeline;
  const std::unique_ptr<ir::Graph> graph = pipeline.MakeGraph(1000);
  ASSERT_OK_AND_ASSIGN(const std::vector<passes::PassReport> reports, pipeline.Run(*graph));
  ASSERT_EQ(reports.size(), 7);
  for (const passes::PassReport& report : reports) {
    if (report.pass == "cleanup") continue;  // The passes before it leave nothing behind.
    EXPECT_GT(report.matches, 50) << report.pass;
  }
}

}  // namespace
}  // namespace fuselage::testing
