#include "harness/decide/mixed_precision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "ir/testing/matchers.h"

namespace fuselage::harness {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Networks whose errors and times add up.
struct Additive {
  std::vector<LayerGroup> groups;
  double most_error = 0;
  double most_ms = 0;  // 0: the error is bounded.
  std::set<std::vector<int>> tried;

  double Error(const std::vector<int>& fp32) const {
    double error = 0;
    for (const LayerGroup& group : groups) error += group.harm;
    for (const int i : fp32) error -= groups[i].harm;
    return error;
  }
  double Ms(const std::vector<int>& fp32) const {
    double ms = 1;
    for (const int i : fp32) ms += groups[i].gain_ms;
    return ms;
  }
  absl::StatusOr<MixedPrecision> Search(int evaluations = 100) {
    MixedPrecisionOptions options;
    options.fp32_helps = most_ms == 0;
    options.evaluations = evaluations;
    return SearchMixedPrecision(groups, options, [&](const std::vector<int>& fp32) -> absl::StatusOr<Verdict> {
      EXPECT_TRUE(tried.insert(fp32).second) << "asked twice";
      if (most_ms > 0) return Verdict{Ms(fp32) <= most_ms, Error(fp32)};
      return Verdict{Error(fp32) <= most_error, Ms(fp32)};
    });
  }
};

TEST(MixedPrecision, AllInInt8WhereThatIsWithin) {
  Additive network{{{1, 1}, {1, 1}}, 3, 0, {}};
  ASSERT_OK_AND_ASSIGN(const MixedPrecision found, network.Search());
  EXPECT_THAT(found.fp32, IsEmpty());
  EXPECT_TRUE(found.verdict.within);
  EXPECT_EQ(found.evaluations, 1);
}

TEST(MixedPrecision, LeavesWhatHarmsMostForItsTime) {
  // The third harms as much as the first for a tenth of the time.
  Additive network{{{5, 1}, {0.1, 1}, {5, 0.1}, {0.1, 0.1}, {0.1, 2}}, 5.5, 0, {}};
  ASSERT_OK_AND_ASSIGN(const MixedPrecision found, network.Search());
  EXPECT_THAT(found.fp32, ElementsAre(2));
  EXPECT_DOUBLE_EQ(found.verdict.cost, 1.1);
}

TEST(MixedPrecision, TakesBackWhatThePrefixNeedNotHave) {
  // By worth the small ones come first, but the big one is needed and enough.
  Additive network{{{1, 0.1}, {1, 0.1}, {8, 1}}, 2.5, 0, {}};
  ASSERT_OK_AND_ASSIGN(const MixedPrecision found, network.Search());
  EXPECT_THAT(found.fp32, ElementsAre(2));
}

// The first and the fourth are needed. With another in FP32 a network seems 0.5 % faster, by chance.
TEST(MixedPrecision, NoiseLeavesNothingInFp32) {
  const std::vector<LayerGroup> groups = {{4, 0.1}, {0.3, 0.01}, {0.3, 0.01}, {4, 0.1}, {0.1, 3}};
  for (const double noise : {0.0, 0.005}) {
    ASSERT_OK_AND_ASSIGN(const MixedPrecision found,
                         SearchMixedPrecision(groups, {}, [&](const std::vector<int>& fp32) -> absl::StatusOr<Verdict> {
                           const bool within =
                               std::count(fp32.begin(), fp32.end(), 0) + std::count(fp32.begin(), fp32.end(), 3) == 2;
                           return Verdict{within, 1 - 0.005 * static_cast<double>(fp32.size()), noise};
                         }));
    EXPECT_TRUE(found.verdict.within);
    if (noise > 0) {
      EXPECT_THAT(found.fp32, ElementsAre(0, 3));
    } else {
      EXPECT_THAT(found.fp32, ElementsAre(0, 1, 3));
    }
  }
}

TEST(MixedPrecision, SpendsTheTimeByWorth) {
  Additive network{{{5, 1}, {3, 0.5}, {1, 0.4}, {0.5, 3}}, 0, 2.0, {}};
  ASSERT_OK_AND_ASSIGN(const MixedPrecision found, network.Search());
  EXPECT_TRUE(found.verdict.within);
  EXPECT_THAT(found.fp32, ElementsAre(1, 2));
}

TEST(MixedPrecision, SaysWhereNothingIsWithin) {
  Additive slow{{{5, 1}, {3, 0.5}}, 0, 0.5, {}};
  ASSERT_OK_AND_ASSIGN(MixedPrecision found, slow.Search());
  EXPECT_FALSE(found.verdict.within);
  EXPECT_THAT(found.fp32, IsEmpty());
  Additive coarse{{{5, 1}, {3, 0.5}}, -1, 0, {}};
  ASSERT_OK_AND_ASSIGN(found, coarse.Search());
  EXPECT_FALSE(found.verdict.within);
  EXPECT_THAT(found.fp32, ElementsAre(0, 1));
}

TEST(MixedPrecision, KeepsToItsEvaluations) {
  std::vector<LayerGroup> groups;
  for (int i = 0; i < 200; ++i) groups.push_back({1.0 + i % 7, 1.0 + i % 5});
  Additive network{groups, 300, 0, {}};
  for (const int evaluations : {1, 2, 5, 12, 30}) {
    network.tried.clear();
    ASSERT_OK_AND_ASSIGN(const MixedPrecision found, network.Search(evaluations));
    EXPECT_LE(found.evaluations, evaluations);
    EXPECT_EQ(found.evaluations, static_cast<int>(network.tried.size()));
    EXPECT_EQ(found.verdict.within, evaluations >= 12) << evaluations;
  }
}

TEST(MixedPrecision, NanIsWorst) {
  Additive network{{{1, 1}, {2, 1}, {std::nan(""), 1}}, 0, 0, {}};
  std::vector<int> first;
  ASSERT_OK(SearchMixedPrecision(network.groups, {}, [&](const std::vector<int>& fp32) -> absl::StatusOr<Verdict> {
    if (fp32.size() == 1 && first.empty()) first = fp32;
    return Verdict{fp32.size() == 3, 0};
  }));
  EXPECT_THAT(first, ElementsAre(2));
}

}  // namespace
}  // namespace fuselage::harness
