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
  Panel(const PairPanel& panel, const std::function<int(int64_t)>& weight)
      : panel(panel), before(panel.steps * kPanelBytes), after(panel.bytes(), 0xAA) {
    for (size_t i = 0; i < before.size(); ++i) before[i] = static_cast<int8_t>(weight(i));
    std::memcpy(after.data(), before.data(), before.size());
    GroupPairs(panel, after.data());
  }
  const PairGroups& groups(const uint8_t* chunk) const { return *reinterpret_cast<const PairGroups*>(chunk); }
  std::vector<int> counts() const { return {groups(after.data()).count, groups(after.data()).count + kMaxGroupParts}; }

  const PairPanel panel;
  std::vector<int8_t> before;
  std::vector<uint8_t> after;
};

// Parts add up to their steps, a step whose pairs fit is one, and no codes make the sums of a group leave 16 bits.
void Check(const Panel& panel) {
  std::vector<int> sums(panel.before.size());
  std::vector<int> parts(panel.panel.steps);
  const uint8_t* chunk = panel.after.data();
  for (int64_t first = 0, steps; first < panel.panel.steps; first += steps, chunk += panel.panel.chunk_bytes()) {
    steps = std::min(panel.panel.chunk_steps(), panel.panel.steps - first);
    const int64_t most = steps * panel.panel.parts_of_step;
    ASSERT_LE(most, kMaxPairParts);
    const PairGroups& groups = panel.groups(chunk);
    const auto* weights = reinterpret_cast<const int8_t*>(chunk) + PairWeightsOffset(most);
    int64_t place = 0;
    for (int i = 0; i < kMaxGroupParts; ++i) {
      const int size = kMaxGroupParts - i;
      for (int group = 0; group < groups.count[i]; ++group) {
        int highest[2 * kPanel] = {}, lowest[2 * kPanel] = {};
        for (int k = 0; k < size; ++k, ++place, weights += kPanelBytes) {
          ASSERT_LT(place, most);
          const int32_t step = groups.steps()[place];
          ASSERT_TRUE(step >= 0 && step < steps) << step;
          ++parts[first + step];
          for (int j = 0; j < kPanelBytes; ++j) {
            sums[(first + step) * kPanelBytes + j] += weights[j];
            (weights[j] > 0 ? highest : lowest)[j / 2] += 255 * weights[j];
          }
        }
        ASSERT_LT(*std::max_element(highest, highest + 2 * kPanel), 1 << 15);
        ASSERT_GE(*std::min_element(lowest, lowest + 2 * kPanel), -(1 << 15));
      }
    }
  }
  EXPECT_EQ(sums, std::vector<int>(panel.before.begin(), panel.before.end()));
  for (int64_t step = 0; step < panel.panel.steps; ++step) {
    bool fits = true;
    for (int64_t i = step * kPanelBytes; i < (step + 1) * kPanelBytes; i += 2) {
      const int a = panel.before[i], b = panel.before[i + 1];
      fits = fits && std::max(a, 0) + std::max(b, 0) <= 128 && std::min(a, 0) + std::min(b, 0) >= -128;
    }
    ASSERT_EQ(parts[step], fits ? 1 : 2) << step;
  }
}

TEST(GroupPairs, TakesAnyWeights) {
  std::mt19937 random(1);
  for (const int64_t steps : {1, 2, 3, 4, 5, 37, 257, 512, 1000}) {
    for (const int largest : {0, 3, 16, 31, 63, 64, 65, 90, 128}) {
      const Panel panel({steps, largest <= kMaxPairWeight ? 1 : 2}, [&](int64_t) {
        return std::max(-128, std::min(127, std::uniform_int_distribution<int>(-largest, largest)(random)));
      });
      Check(panel);
    }
  }
}

TEST(GroupPairs, TakesTheLargestWeights) {
  for (const int a : {-128, -127, 127}) {
    for (const int b : {-128, -127, 0, 1, 2, 127}) {
      Check(Panel({3, 2}, [&](int64_t i) { return i % 2 == 0 ? a : b; }));
      Check(Panel({3, 2}, [&](int64_t i) { return i % 2 == 0 ? b : a; }));
    }
  }
}

TEST(GroupPairs, FourPartsTogetherWhereTheyFit) {
  const PairPanel nine = {9, 1};
  EXPECT_EQ(Panel(nine, [](int64_t) { return 16; }).counts(), (std::vector<int>{2, 0, 0, 1}));
  EXPECT_EQ(Panel(nine, [](int64_t) { return -16; }).counts(), (std::vector<int>{2, 0, 0, 1}));
  EXPECT_EQ(Panel(nine, [](int64_t) { return 17; }).counts(), (std::vector<int>{0, 3, 0, 0}));
  EXPECT_EQ(Panel(nine, [](int64_t) { return 32; }).counts(), (std::vector<int>{0, 0, 4, 1}));
  EXPECT_EQ(Panel(nine, [](int64_t) { return 64; }).counts(), (std::vector<int>{0, 0, 0, 9}));
  // Signs apart: a lane has 64 and -64.
  EXPECT_EQ(Panel(nine, [](int64_t i) { return i % 2 == 0 ? 64 : -64; }).counts(), (std::vector<int>{0, 0, 4, 1}));
  // A lane of 65 and 64 is two parts of 64 and 65, two lanes of 100 and 3 need no second one.
  EXPECT_EQ(Panel({2, 2}, [](int64_t i) { return i % 2 == 0 ? 65 : 64; }).counts(), (std::vector<int>{0, 0, 1, 2}));
  EXPECT_EQ(Panel({2, 2}, [](int64_t i) { return i % 2 == 0 ? 100 : 3; }).counts(), (std::vector<int>{0, 0, 0, 2}));
}

// Large steps come together with small ones, wherever they are.
TEST(GroupPairs, LargeStepsMeetSmallOnes) {
  const Panel panel({64, 1}, [](int64_t i) { return i / kPanelBytes < 16 ? 58 : 2; });
  EXPECT_EQ(panel.counts(), (std::vector<int>{16, 0, 0, 0}));
  Check(panel);
}

TEST(PairsOf, DependsOnTheLargestAndOnTheMean) {
  EXPECT_EQ(PairsOf(64, 64), Pairs::kFit);
  EXPECT_EQ(PairsOf(20, 65), Pairs::kMostly);
  EXPECT_EQ(PairsOf(40, 127), Pairs::kExceed);
}

}  // namespace
}  // namespace fuselage::kernels
