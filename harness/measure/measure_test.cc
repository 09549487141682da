#include "harness/measure/measure.h"

#include <cmath>
#include <string>
#include <thread>

#include "gtest/gtest.h"
#include "harness/measure/accuracy.h"

namespace fuselage::harness {
namespace {

TEST(RankOf, EqualLogitsAreSortedByClass) {
  const std::vector<float> logits = {1, 3, 3, 2};
  EXPECT_EQ(RankOf(logits, 1), 0);
  EXPECT_EQ(RankOf(logits, 2), 1);
  EXPECT_EQ(RankOf(logits, 3), 2);
  EXPECT_EQ(RankOf(logits, 0), 3);
  EXPECT_EQ(RankOf({1.0f, NAN}, 0), -1);
}

TEST(Agreement, CountsEqualClasses) {
  Predictions a, b;
  a.top1 = {1, 2, 3, 4};
  b.top1 = {1, 2, 0};
  EXPECT_DOUBLE_EQ(Agreement(a, b), 100.0 * 2 / 3);
  EXPECT_EQ(Agreement(a, Predictions()), 0);
}

TEST(MeasureInTurns, EveryoneGetsRepetitionsAndTime) {
  std::string order;
  const auto runner = [&](char name, int ms) {
    return Contestant{[&order, name, ms] {
                        order += name;
                        std::this_thread::sleep_for(std::chrono::milliseconds(ms));
                        return absl::OkStatus();
                      },
                      {}};
  };
  std::vector<Contestant> contestants = {runner('a', 5), runner('b', 30)};
  MeasureOptions options;
  options.warmup = 1;
  options.repetitions = 5;
  options.min_time_ms = 120;
  double last_fraction = 0;
  options.progress = [&](double fraction) { last_fraction = fraction; };
  ASSERT_TRUE(MeasureInTurns(options, &contestants).ok());
  EXPECT_EQ(last_fraction, 1);
  EXPECT_EQ(order.substr(0, 2), "ab") << "warm-up first";
  EXPECT_NE(order.find("bba"), std::string::npos) << "b's turn ends and a's begins: " << order;
  for (const Contestant& contestant : contestants) {
    EXPECT_GE(contestant.ms.size(), 5);
    double total = 0;
    for (double ms : contestant.ms) total += ms;
    EXPECT_GE(total, 120);
  }
  EXPECT_GE(contestants[1].ms[0], 29);
}

TEST(MeasureInTurns, AnErrorEndsIt) {
  std::vector<Contestant> contestants = {{[] { return absl::InternalError("broken"); }, {}}};
  EXPECT_EQ(MeasureInTurns(MeasureOptions(), &contestants).message(), "broken");
}

}  // namespace
}  // namespace fuselage::harness
