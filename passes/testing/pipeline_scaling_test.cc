// Each pass is linear in the graph, and so is the pipeline around it.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>

#include "ir/testing/matchers.h"
#include "passes/testing/pipeline_at_scale.h"

namespace fuselage::testing {
namespace {

// Processor time of this process: what else the machine does counts little.
double ProcessorSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double BestSeconds(const PipelineAtScale& pipeline, int64_t nodes, int repetitions) {
  double best = 1e9;
  for (int i = 0; i < repetitions; ++i) {
    const std::unique_ptr<ir::Graph> graph = pipeline.MakeGraph(nodes);
    const double start = ProcessorSeconds();
    EXPECT_OK(pipeline.Run(*graph));
    best = std::min(best, ProcessorSeconds() - start);
  }
  return best;
}

// A quadratic step takes a hundred times as long on ten times the nodes; a linear walk that leaves the caches up to
// thirty times.
TEST(PipelineScalingTest, TenTimesTheNodesTakeUnderFortyTimesTheTime) {
  const PipelineAtScale pipeline;
  const double small = BestSeconds(pipeline, 5000, 5);
  const double large = BestSeconds(pipeline, 50000, 2);
  RecordProperty("ratio_percent", static_cast<int>(100 * large / small));
  EXPECT_LT(large / small, 40) << small << " s for 5,000 nodes, " << large << " s for 50,000";
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
