#include "tools/peers/cudnn/choice.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/testing/matchers.h"

namespace fuselage::peers::cudnn {
namespace {

using ::fuselage::testing::StatusIs;
using ::testing::ElementsAre;
using Times = std::vector<absl::StatusOr<double>>;

const absl::Status kNone = absl::NotFoundError("no such candidate"), kRefused = absl::UnimplementedError("refused"),
                   kCrashed = absl::InternalError("ended by signal 11"), kLost = absl::DataLossError("lost"),
                   kHung = absl::DeadlineExceededError("took more than 20000 ms");

TEST(Fastest, OfThoseThatRan) {
  EXPECT_EQ(Fastest(Times{3.0, 2.0, 4.0}).value_or(-1), 1);
  EXPECT_EQ(Fastest(Times{kCrashed, 2.0, kRefused, 1.5, kHung, kNone}).value_or(-1), 3);
  EXPECT_EQ(Fastest(Times{2.0, 2.0}).value_or(-1), 0) << "the heuristics' order decides";
}

TEST(Fastest, SaysWhyNoneRan) {
  EXPECT_THAT(Fastest(Times{kRefused, kCrashed}).status(),
              StatusIs(absl::StatusCode::kUnimplemented, "no engine of cuDNN's ran it: refused"));
  for (const Times& none : {Times{}, Times{kNone, kNone}}) {
    EXPECT_THAT(Fastest(none).status(), StatusIs(absl::StatusCode::kUnimplemented, "cuDNN has no engine for it"));
  }
}

TEST(Accidents, AreWhatEndedAProcess) {
  EXPECT_THAT(
      Accidents(Times{kCrashed, 1.0, kRefused, kHung, kLost, kNone}),
      ElementsAre("candidate 0: ended by signal 11", "candidate 3: took more than 20000 ms", "candidate 4: lost"));
}

}  // namespace
}  // namespace fuselage::peers::cudnn
