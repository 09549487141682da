#include "runtime/memory_plan.h"

#include <algorithm>
#include <map>
#include <random>

#include "gtest/gtest.h"

namespace fuselage::runtime {
namespace {

// The most bytes alive in any one step, each buffer rounded up to the alignment: no plan is smaller.
int64_t LargestLiveSet(const std::vector<Lifetime>& buffers) {
  std::map<int, int64_t> change;  // How the live bytes change at the start of a step.
  for (const Lifetime& buffer : buffers) {
    const int64_t bytes = (buffer.bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
    change[buffer.first] += bytes;
    change[buffer.last + 1] -= bytes;
  }
  int64_t live = 0, most = 0;
  for (const auto& [step, bytes] : change) most = std::max(most, live += bytes);
  return most;
}

void ExpectValid(const std::vector<Lifetime>& buffers, const MemoryPlan& plan) {
  ASSERT_EQ(plan.offsets.size(), buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    EXPECT_GE(plan.offsets[i], 0);
    EXPECT_EQ(plan.offsets[i] % kArenaAlignment, 0);
    EXPECT_LE(plan.offsets[i] + buffers[i].bytes, plan.bytes);
    for (size_t j = 0; j < i; ++j) {
      if (buffers[i].last < buffers[j].first || buffers[j].last < buffers[i].first) continue;
      EXPECT_TRUE(plan.offsets[i] + buffers[i].bytes <= plan.offsets[j] ||
                  plan.offsets[j] + buffers[j].bytes <= plan.offsets[i])
          << i << " and " << j << " overlap";
    }
  }
  EXPECT_GE(plan.bytes, LargestLiveSet(buffers));
}

TEST(MemoryPlan, Empty) {
  EXPECT_EQ(PlanMemory({}).bytes, 0);
  EXPECT_EQ(LargestLiveSet({}), 0);
}

TEST(MemoryPlan, ChainTakesTwoBuffers) {
  std::vector<Lifetime> chain;
  for (int i = 0; i < 20; ++i) chain.push_back({1024, i, i + 1});
  const MemoryPlan plan = PlanMemory(chain);
  ExpectValid(chain, plan);
  EXPECT_EQ(plan.bytes, 2048);
}

TEST(MemoryPlan, SizesAreRoundedUp) {
  const std::vector<Lifetime> buffers = {{1, 0, 1}, {65, 0, 1}, {0, 0, 1}};
  const MemoryPlan plan = PlanMemory(buffers);
  ExpectValid(buffers, plan);
  EXPECT_EQ(plan.bytes, 192);
}

// A residual block: the input stays alive beside the block's two convolutions.
TEST(MemoryPlan, ResidualBlocksTakeThreeBuffers) {
  std::vector<Lifetime> buffers = {{4096, 0, 2}};
  for (int block = 0; block < 4; ++block) {
    const int step = 1 + 2 * block;
    buffers.push_back({4096, step, step + 1});
    buffers.push_back({4096, step + 1, step + 3});
  }
  const MemoryPlan plan = PlanMemory(buffers);
  ExpectValid(buffers, plan);
  EXPECT_EQ(plan.bytes, 3 * 4096);
}

TEST(MemoryPlan, SmallBufferTakesTheSmallestGap) {
  // The second and the fourth end at step 0, and leave gaps of 2048 and 512 bytes.
  const std::vector<Lifetime> buffers = {{4096, 0, 9}, {2048, 0, 0}, {1024, 0, 9},
                                         {512, 0, 0},  {256, 0, 9},  {192, 5, 6}};
  const MemoryPlan plan = PlanMemory(buffers);
  ExpectValid(buffers, plan);
  EXPECT_EQ(plan.offsets[5], 4096 + 2048 + 1024);
  EXPECT_EQ(plan.bytes, LargestLiveSet(buffers));
}

TEST(MemoryPlan, RandomLifetimes) {
  std::mt19937 random(1);
  double worst = 0;
  for (int round = 0; round < 300; ++round) {
    std::vector<Lifetime> buffers(1 + random() % 60);
    for (Lifetime& buffer : buffers) {
      buffer.bytes = random() % 3 == 0 ? random() % 100 : random() % 100000;
      buffer.first = random() % 50;
      buffer.last = buffer.first + random() % (random() % 4 == 0 ? 30 : 4);
    }
    const MemoryPlan plan = PlanMemory(buffers);
    ExpectValid(buffers, plan);
    const int64_t bound = LargestLiveSet(buffers);
    if (bound > 0) worst = std::max(worst, static_cast<double>(plan.bytes) / bound);
  }
  EXPECT_LE(worst, 1.4);
  RecordProperty("worst_over_bound", std::to_string(worst));
}

TEST(MemoryPlan, IsDeterministic) {
  const std::vector<Lifetime> buffers = {{512, 0, 2}, {512, 1, 3}, {512, 2, 4}, {512, 3, 5}};
  EXPECT_EQ(PlanMemory(buffers).offsets, PlanMemory(buffers).offsets);
}

}  // namespace
}  // namespace fuselage::runtime
