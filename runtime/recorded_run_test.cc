// What a recorded run says: it computes the same, its spans cover the steps, and the plan of the arena is one.
#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "kernels/register_all.h"
#include "runtime/executable.h"
#include "runtime/int8_graph_builder.h"
#include "runtime/testing.h"

namespace fuselage::runtime {
namespace {

class RecordedRunTest : public ::testing::TestWithParam<int> {
 protected:
  RecordedRunTest() : pool_(GetParam()) {
    ops::RegisterAll(ops_);
    kernels::RegisterAll(kernels_);
    Int8GraphBuilder builder(ops_, DType::kU8);
    const ir::Graph& graph = builder.Output({builder.ResNet18(1, 10)});
    inputs_ = SeededInputs(graph);
    executable_ = Executable::Create(graph, kernels_, &pool_).value();
  }

  std::vector<StepSpan> Record(Tensor* output) {
    *output = Tensor(executable_->output_types()[0]);
    const Tensor* input = &inputs_[0];
    return executable_->RunRecorded({&input, 1}, {&output, 1}).value();
  }

  ir::OpRegistry ops_;
  kernels::KernelRegistry kernels_;
  ThreadPool pool_;
  std::vector<Tensor> inputs_;
  std::unique_ptr<Executable> executable_;
};

TEST_P(RecordedRunTest, SpansCoverTheSteps) {
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> wanted, RunOnce(*executable_, inputs_));
  // A run may be over before a thread wakes up: each has its part in one of many.
  std::set<int> threads;
  for (int run = 0; run < 1000 && !HasFailure() && threads.size() < static_cast<size_t>(GetParam()); ++run) {
    Tensor found;
    const std::vector<StepSpan> spans = Record(&found);
    EXPECT_TRUE(found.SameBytes(wanted[0]));

    std::map<int, double> end_of_thread;
    std::map<int, std::pair<double, double>> steps;  // Of the caller, who begins and ends each.
    int last_thread = 0;
    for (const StepSpan& span : spans) {
      EXPECT_LE(last_thread, span.thread);
      last_thread = span.thread;
      threads.insert(span.thread);
      EXPECT_LE(end_of_thread[span.thread], span.begin) << "a thread does one thing at a time";
      EXPECT_LE(span.begin, span.end);
      end_of_thread[span.thread] = span.end;
      if (span.thread == 0) {
        auto [step, is_new] = steps.try_emplace(span.step, span.begin, span.end);
        step->second.second = span.end;
      } else {
        ASSERT_TRUE(steps.count(span.step));
        EXPECT_LE(steps[span.step].first, span.begin);
        EXPECT_LE(span.end, steps[span.step].second);
      }
    }
    EXPECT_EQ(steps.size(), executable_->profile().size());
  }
  EXPECT_EQ(threads.size(), GetParam());
}

TEST_P(RecordedRunTest, StepsReadWhatEarlierOnesWrote) {
  const std::vector<StepProfile>& steps = executable_->profile();
  size_t joins = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i].reads.empty(), i == 0) << steps[i].node;
    for (int writer : steps[i].reads) EXPECT_LT(writer, static_cast<int>(i));
    joins += steps[i].reads.size() == 2;
  }
  EXPECT_EQ(joins, 8) << "residual blocks";
}

TEST_P(RecordedRunTest, BlocksOfTheArenaAreApart) {
  const std::vector<ArenaBlock>& blocks = executable_->arena();
  int64_t end = 0;
  int scratch = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const ArenaBlock& a = blocks[i];
    end = std::max(end, a.offset + a.bytes);
    scratch += a.scratch;
    EXPECT_EQ(a.writer, a.first);
    EXPECT_TRUE(!a.scratch || a.first == a.last);
    for (size_t j = 0; j < i; ++j) {
      const ArenaBlock& b = blocks[j];
      const bool together = a.first <= b.last && b.first <= a.last;
      EXPECT_FALSE(together && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes) << i << ", " << j;
    }
  }
  EXPECT_LE(end, executable_->arena_bytes());
  EXPECT_GT(end, executable_->arena_bytes() - 64);
  EXPECT_GT(scratch, 0);
}

INSTANTIATE_TEST_SUITE_P(Threads, RecordedRunTest, ::testing::Values(1, 2, 3));

}  // namespace
}  // namespace fuselage::runtime
