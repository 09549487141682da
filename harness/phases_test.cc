// The practice phases, as shipped: what each reaches, from its results.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harness/base/exit_code.h"
#include "harness/base/files.h"
#include "harness/results.pb.h"
#include "harness/testing/runs.h"
#include "harness/testing/testing.h"

namespace fuselage::harness {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Phase {
  std::string out;
  Results results;
};

// Runs a shipped config, with the flags in `args`.
Phase RunPhase(const std::string& name, std::vector<std::string> args = {}) {
  testing::UseFixedPeaks();
  const std::string folder = ::testing::TempDir() + "/" + name;
  args.insert(args.begin(), {"--config=" + name + ".textproto", "--out=" + folder});
  const testing::Outcome outcome = testing::RunWithArgs(args);
  EXPECT_EQ(outcome.code, kOk) << outcome.err;
  Phase phase = {outcome.out, testing::ReadResults(folder)};
  EXPECT_EQ(phase.results.status(), "complete");
  return phase;
}

// The one pass of that name; a failure and an empty one where there is none.
Results::Pass PassOf(const Results& results, const std::string& name) {
  for (const auto& pass : results.passes()) {
    if (pass.name() == name) return pass;
  }
  ADD_FAILURE() << "no pass " << name;
  return {};
}

TEST(Phases, TraceAnMlpOfFiveNodes) {
  const Phase phase = RunPhase("phase1_trace");
  ASSERT_EQ(phase.results.graphs_size(), 1);
  EXPECT_EQ(phase.results.graphs(0).nodes(), 5);
  EXPECT_THAT(phase.out, AllOf(HasSubstr("Graph as read: 5 nodes\n"), HasSubstr("name"), HasSubstr("kind"),
                               HasSubstr("target"), HasSubstr("inputs"), HasSubstr("users")));
}

TEST(Phases, ManualFusionTakesTwoPairs) {
  const Phase phase = RunPhase("phase2_manual_fusion");
  const Results::Pass fusion = PassOf(phase.results, "fusion");
  EXPECT_EQ(fusion.nodes_before(), 7);
  EXPECT_EQ(fusion.nodes_after(), 5);
  EXPECT_EQ(fusion.matches(), 2);
  EXPECT_LT(fusion.max_abs_error(), 1e-5);
  EXPECT_THAT(phase.out, AllOf(HasSubstr("Graph as read: 7 nodes"), HasSubstr("Graph after fusion: 5 nodes")));
  EXPECT_LT(phase.results.variants(1).max_abs_error(), 1e-5);
}

TEST(Phases, PatternRewritingFindsTwoOfEach) {
  const Phase phase = RunPhase("phase3_pattern_rewrite");
  const Results::Pass add_relu = PassOf(phase.results, "add_relu");
  EXPECT_EQ(add_relu.nodes_before(), 13);
  EXPECT_EQ(add_relu.nodes_after(), 11);
  EXPECT_EQ(add_relu.matches(), 2);
  const Results::Pass matmul = PassOf(phase.results, "matmul_add_relu");
  EXPECT_EQ(matmul.nodes_before(), 11);
  EXPECT_EQ(matmul.nodes_after(), 9);
  EXPECT_EQ(matmul.matches(), 2);
  EXPECT_LT(matmul.max_abs_error(), 1e-5);
  ASSERT_EQ(phase.results.variants_size(), 3);
  EXPECT_LT(phase.results.variants(2).max_abs_error(), 1e-5);
  EXPECT_LT(phase.results.variants(2).measurements(0).counted_bytes(),
            phase.results.variants(0).measurements(0).counted_bytes());
  EXPECT_THAT(phase.out,
              AllOf(HasSubstr("Graph after add_relu: 11 nodes"), HasSubstr("Graph after matmul_add_relu: 9 nodes")));
}

TEST(Phases, BenchmarkAtFourBatchSizes) {
  const Phase phase = RunPhase("phase4_benchmark");
  ASSERT_EQ(phase.results.variants_size(), 2);
  const auto &unfused = phase.results.variants(0), &fused = phase.results.variants(1);
  ASSERT_EQ(unfused.measurements_size(), 4);
  ASSERT_EQ(fused.measurements_size(), 4);
  const int batches[] = {1, 16, 64, 256};
  for (int i = 0; i < 4; ++i) {
    const auto &before = unfused.measurements(i), &after = fused.measurements(i);
    EXPECT_EQ(before.batch(), batches[i]);
    EXPECT_EQ(after.batch(), batches[i]);
    EXPECT_GT(after.latency_ms().median(), 0);
    EXPECT_GT(after.images_per_second(), 0);
    EXPECT_GT(after.counted_bytes(), 0);
    EXPECT_LT(after.counted_bytes(), before.counted_bytes()) << "fusion moves fewer bytes";
    EXPECT_GT(after.predicted_speedup(), 1);
    EXPECT_TRUE(after.has_measured_bytes() ||
                phase.results.environment().memory_counter().find("not available here: ") == 0);
  }
  EXPECT_GT(unfused.measurements(3).counted_bytes(), 200 * unfused.measurements(0).counted_bytes());
  EXPECT_THAT(phase.out, AllOf(HasSubstr("samples/s"), HasSubstr("speedup"), HasSubstr("Bytes moved")));
}

TEST(Phases, ConvBnFoldsTwoPairs) {
  const Phase phase = RunPhase("phase5_conv_bn");
  const Results::Pass conv_bn = PassOf(phase.results, "conv_bn");
  EXPECT_EQ(conv_bn.nodes_before(), 9);
  EXPECT_EQ(conv_bn.nodes_after(), 7);
  EXPECT_EQ(conv_bn.matches(), 2);
  EXPECT_GT(conv_bn.max_abs_error(), 0) << "a comparison that compared";
  EXPECT_LT(conv_bn.max_abs_error(), 1e-5);
  EXPECT_LT(phase.results.variants(1).max_abs_error(), 1e-5);
}

// phases.textproto names every phase that there is; each runs in a test above.
TEST(Phases, TheSequenceHoldsThemAll) {
  const SearchPath search = SearchPath::FromEnvironment();
  const auto text = ReadFile(search.Find("harness/configs/phases.textproto"));
  ASSERT_TRUE(text.ok()) << text.status();
  for (const char* name :
       {"phase1_trace", "phase2_manual_fusion", "phase3_pattern_rewrite", "phase4_benchmark", "phase5_conv_bn"}) {
    EXPECT_THAT(*text, HasSubstr(std::string("sequence: \"") + name + ".textproto\""));
  }
}

}  // namespace
}  // namespace fuselage::harness
