#include "harness/report/merge.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/testing/matchers.h"

namespace fuselage::report {
namespace {

using ::fuselage::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

Results::Run RunOf(const std::string& name, const std::string& started) {
  Results::Run run;
  run.set_name(name);
  Results& results = *run.mutable_results();
  results.set_status("complete");
  results.set_config("of " + name);
  results.add_variants()->set_name("int8");
  Results::Environment& environment = *results.mutable_environment();
  environment.set_cpu("a CPU");
  environment.set_cores(2);
  environment.set_git_commit("c0ffee");
  environment.set_started(started);
  environment.set_process_peak_rss_bytes(1);
  return run;
}

TEST(Merge, RunsStayWholeAndShareTheirMachine) {
  std::vector<Results::Run> runs = {RunOf("b", "2030-02-02"), RunOf("a", "2030-01-01"), RunOf("c", "2030-03-03")};
  runs[1].mutable_results()->mutable_environment()->set_gpu_arch("sm_90");
  ASSERT_OK_AND_ASSIGN(const Results merged, Merge(runs));
  ASSERT_THAT(merged.runs(), SizeIs(3));
  for (size_t i = 0; i < runs.size(); ++i) {
    EXPECT_EQ(merged.runs(static_cast<int>(i)).SerializeAsString(), runs[i].SerializeAsString());
  }
  EXPECT_EQ(merged.status(), "complete");
  EXPECT_EQ(merged.config(), "of a, of b, of c");
  EXPECT_EQ(merged.environment().cpu(), "a CPU");
  EXPECT_EQ(merged.environment().gpu_arch(), "sm_90") << "of those that have one";
  EXPECT_EQ(merged.environment().started(), "2030-01-01");
  EXPECT_FALSE(merged.environment().has_process_peak_rss_bytes());
  EXPECT_THAT(merged.variants(), SizeIs(0));
}

TEST(Merge, SessionsHandOverWhatTheyHold) {
  ASSERT_OK_AND_ASSIGN(const Results first, Merge({RunOf("a", "1"), RunOf("b", "2")}));
  Results::Run session, steps;
  *session.mutable_results() = first;
  steps.mutable_results()->add_steps()->set_name("a step");
  ASSERT_OK_AND_ASSIGN(const Results merged, Merge({RunOf("c", "3"), session, steps}));
  ASSERT_THAT(merged.runs(), SizeIs(3));
  EXPECT_EQ(merged.runs(1).name(), "a");
  ASSERT_THAT(merged.steps(), SizeIs(1));
  EXPECT_EQ(merged.steps(0).name(), "a step");
}

TEST(Merge, OneIncompleteRunIsTold) {
  std::vector<Results::Run> runs = {RunOf("a", "1"), RunOf("b", "2")};
  runs[1].mutable_results()->set_status("INCOMPLETE");
  runs[1].mutable_results()->set_error("out of memory");
  ASSERT_OK_AND_ASSIGN(const Results merged, Merge(runs));
  EXPECT_EQ(merged.status(), "INCOMPLETE");
  EXPECT_EQ(merged.error(), "b: out of memory");
}

TEST(Merge, OneMachineAndOneBuild) {
  const std::vector<Results::Run> runs = {RunOf("a", "1"), RunOf("b", "2"), RunOf("c", "3")};
  const auto expect = [&](const auto& change, const std::string& what) {
    std::vector<Results::Run> others = runs;
    change(*others[2].mutable_results()->mutable_environment());
    EXPECT_THAT(Merge(others), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)));
  };
  expect([](auto& environment) { environment.set_cpu("another"); },
         R"(c: found cpu "another", wanted "a CPU" as in a)");
  expect([](auto& environment) { environment.set_cores(3); }, "c: found cores 3, wanted 2 as in a");
  expect([](auto& environment) { environment.set_git_commit("decaf"); },
         R"(c: found git_commit "decaf", wanted "c0ffee" as in a)");
  std::vector<Results::Run> others = runs;
  others[1].mutable_results()->mutable_environment()->set_cuda_driver("12.8");
  others[2].mutable_results()->mutable_environment()->set_cuda_driver("13.0");
  EXPECT_THAT(Merge(others), StatusIs(absl::StatusCode::kInvalidArgument,
                                      AllOf(HasSubstr(R"(c: found cuda_driver "13.0")"), HasSubstr("as in b"))));
  EXPECT_THAT(Merge({runs[0], runs[1], runs[0]}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("two runs called a")));
}

}  // namespace
}  // namespace fuselage::report
