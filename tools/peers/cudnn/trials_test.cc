#include "tools/peers/cudnn/trials.h"

#include <unistd.h>

#include <cstdlib>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/testing/matchers.h"

namespace fuselage::peers::cudnn {
namespace {

using ::fuselage::testing::StatusIs;
using ::testing::HasSubstr;

constexpr std::chrono::milliseconds kLong(60'000), kShort(500);

TEST(TryEach, ACrashCostsOneAttempt) {
  const auto results = TryEach(6, kLong, [](int i) -> absl::StatusOr<double> {
    if (i == 1) abort();
    if (i == 3) _exit(7);
    if (i == 4) return absl::UnimplementedError("no such engine\nat all" + std::string(1000, '.'));
    return 10.0 * i;
  });
  ASSERT_EQ(results.size(), 6);
  for (const int i : {0, 2, 5}) EXPECT_EQ(results[i].value_or(-1), 10.0 * i) << results[i].status();
  EXPECT_THAT(results[1].status(), StatusIs(absl::StatusCode::kInternal, "ended by signal 6"));
  EXPECT_THAT(results[3].status(), StatusIs(absl::StatusCode::kInternal, "ended with code 7"));
  EXPECT_THAT(results[4].status(), StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("no such engine\nat all..")));
}

TEST(TryEach, AHangCostsOneAttempt) {
  const auto results = TryEach(4, kShort, [](int i) -> absl::StatusOr<double> {
    if (i == 0 || i == 2) std::this_thread::sleep_for(kLong);
    return i;
  });
  ASSERT_EQ(results.size(), 4);
  for (const int i : {0, 2}) {
    EXPECT_THAT(results[i].status(), StatusIs(absl::StatusCode::kDeadlineExceeded, "took more than 500 ms"));
  }
  for (const int i : {1, 3}) EXPECT_EQ(results[i].value_or(-1), i) << results[i].status();
}

TEST(TryEach, AfterDataLossTheNextBeginsAnew) {
  int calls = 0;
  const auto results = TryEach(4, kLong, [&](int i) -> absl::StatusOr<double> {
    if (i == 1 || i == 3) return absl::DataLossError("lost");
    return ++calls;
  });
  ASSERT_EQ(results.size(), 4);
  for (const int i : {0, 2}) EXPECT_EQ(results[i].value_or(-1), 1) << results[i].status();
  for (const int i : {1, 3}) EXPECT_THAT(results[i].status(), StatusIs(absl::StatusCode::kDataLoss, "lost"));
}

TEST(TryEach, AttemptsShareAProcessThatIsNotOurs) {
  int calls = 0;
  const auto results = TryEach(3, kLong, [&](int i) -> absl::StatusOr<double> {
    if (i == 1) abort();
    return ++calls;
  });
  EXPECT_EQ(results[0].value_or(-1), 1);
  EXPECT_EQ(results[2].value_or(-1), 1) << "a new process begins as the first did";
  EXPECT_EQ(calls, 0);
  EXPECT_TRUE(TryEach(0, kLong, [](int) { return 1.0; }).empty());
}

}  // namespace
}  // namespace fuselage::peers::cudnn
