#include "kernels/core/multiply/pairs.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace fuselage::kernels {
namespace {

struct Panel {
  Panel(int64_t steps, const std::function<int(int64_t)>& weight)
      : before(steps * kPanelBytes), after(PairPanelBytes(steps), 0xAA) {
    for (size_t i = 0; i < before.size(); ++i) before[i] = static_cast<uint8_t>(weight(i));
    std::memcpy(after.data(), before.data(), before.size());
    GroupPairs(steps, after.data());
  }
  const PairGroups& groups() const { return *reinterpret_cast<const PairGroups*>(after.data() + before.size()); }
  std::vector<int> counts() const { return {groups().count, groups().count + kMaxGroupSteps}; }

  std::vector<uint8_t> before, after;
};

// Every step is there once, and no codes make the sums of a group leave 16 bits.
void Check(const Panel& panel, int64_t steps) {
  std::vector<bool> seen(steps);
  const int32_t* step = panel.groups().steps();
  const uint8_t* weights = panel.after.data();
  int64_t place = 0;
  for (int i = 0; i < kMaxGroupSteps; ++i) {
    const int size = kMaxGroupSteps - i;
    for (int group = 0; group < panel.groups().count[i]; ++group) {
      int highest[2 * kPanel] = {}, lowest[2 * kPanel] = {};
      for (int k = 0; k < size; ++k, ++place, weights += kPanelBytes) {
        ASSERT_LT(place, steps);
        ASSERT_TRUE(step[place] >= 0 && step[place] < steps && !seen[step[place]]) << step[place];
        seen[step[place]] = true;
        ASSERT_EQ(std::memcmp(weights, panel.before.data() + step[place] * kPanelBytes, kPanelBytes), 0);
        for (int j = 0; j < kPanelBytes; ++j) {
          const int most = 255 * static_cast<int8_t>(weights[j]);
          (most > 0 ? highest : lowest)[j / 2] += most;
        }
      }
      ASSERT_LT(*std::max_element(highest, highest + 2 * kPanel), 1 << 15);
      ASSERT_GE(*std::min_element(lowest, lowest + 2 * kPanel), -(1 << 15));
    }
  }
  EXPECT_EQ(place, steps);
}

TEST(GroupPairs, TakesAnyWeights) {
  std::mt19937 random(1);
  for (const int64_t steps : {1, 2, 3, 4, 5, 37, 512}) {
    for (const int largest : {0, 3, 16, 31, 63, 64}) {
      const Panel panel(steps, [&](int64_t) { return std::uniform_int_distribution<int>(-largest, largest)(random); });
      Check(panel, steps);
    }
  }
}

TEST(GroupPairs, FourStepsTogetherWhereTheyFit) {
  EXPECT_EQ(Panel(9, [](int64_t) { return 16; }).counts(), (std::vector<int>{2, 0, 0, 1}));
  EXPECT_EQ(Panel(9, [](int64_t) { return -16; }).counts(), (std::vector<int>{2, 0, 0, 1}));
  EXPECT_EQ(Panel(9, [](int64_t) { return 17; }).counts(), (std::vector<int>{0, 3, 0, 0}));
  EXPECT_EQ(Panel(9, [](int64_t) { return 32; }).counts(), (std::vector<int>{0, 0, 4, 1}));
  EXPECT_EQ(Panel(9, [](int64_t) { return 64; }).counts(), (std::vector<int>{0, 0, 0, 9}));
  // Signs apart: a lane has 64 and -64.
  EXPECT_EQ(Panel(9, [](int64_t i) { return i % 2 == 0 ? 64 : -64; }).counts(), (std::vector<int>{0, 0, 4, 1}));
}

// Large steps come together with small ones, wherever they are.
TEST(GroupPairs, LargeStepsMeetSmallOnes) {
  const Panel panel(64, [](int64_t i) { return i / kPanelBytes < 16 ? 58 : 2; });
  EXPECT_EQ(panel.counts(), (std::vector<int>{16, 0, 0, 0}));
  Check(panel, 64);
}

}  // namespace
}  // namespace fuselage::kernels
