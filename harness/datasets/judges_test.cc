// What judges make of outputs whose worth is known.
#include <cmath>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harness/datasets/classification.h"
#include "harness/datasets/next_byte.h"
#include "ir/testing/matchers.h"

namespace fuselage::datasets {
namespace {

using ::fuselage::testing::StatusIs;
using ::testing::HasSubstr;

TEST(RankOf, EqualLogitsAreSortedByClass) {
  const std::vector<float> logits = {1, 3, 3, 2};
  EXPECT_EQ(RankOf(logits, 1), 0);
  EXPECT_EQ(RankOf(logits, 2), 1);
  EXPECT_EQ(RankOf(logits, 3), 2);
  EXPECT_EQ(RankOf(logits, 0), 3);
  EXPECT_EQ(RankOf({1.0f, NAN}, 0), -1);
}

// Images of which only the labels are asked for.
class Labels : public ImageDataset {
 public:
  Labels(std::vector<int> labels, int classes) : labels_(std::move(labels)), classes_(classes) {}
  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
  int num_classes() const override { return classes_; }
  int label(int64_t i) const override { return labels_[i]; }
  absl::StatusOr<Image> image(int64_t) const override { return absl::UnimplementedError("no pixels"); }

 private:
  const std::vector<int> labels_;
  const int classes_;
};

Results::Variant Recorded(const Judge& judge) {
  Results::Variant result;
  judge.Record(&result);
  return result;
}

TEST(Classification, CountsRightAndEqualClasses) {
  const Labels labels({2, 0, 1}, 3);
  const auto fp32 = labels.MakeJudge(), int8 = labels.MakeJudge();
  const Tensor first = Tensor::Of<float>({2, 3}, {1, 2, 3, 3, 1, 2}),
               second = Tensor::Of<float>({2, 3}, {0, 9, 0, 9, 9, 9});
  ASSERT_OK(fp32->Add(0, 2, first, fp32.get()));
  ASSERT_OK(fp32->Add(2, 1, second, fp32.get()));
  EXPECT_DOUBLE_EQ(Recorded(*fp32).top1(), 100);
  EXPECT_DOUBLE_EQ(Recorded(*fp32).agreement_with_fp32(), 100);

  ASSERT_OK(int8->Add(0, 2, Tensor::Of<float>({2, 3}, {3, 2, 1, 3, 1, 2}), fp32.get()));
  ASSERT_OK(int8->Add(2, 1, second, fp32.get()));
  EXPECT_DOUBLE_EQ(Recorded(*int8).top1(), 100.0 * 2 / 3);
  EXPECT_DOUBLE_EQ(Recorded(*int8).top5(), 100);
  EXPECT_DOUBLE_EQ(Recorded(*int8).agreement_with_fp32(), 100.0 * 2 / 3);
  EXPECT_EQ(int8->Warning(), "");
}

TEST(Classification, NanIsWrongAndAgreesWithNothing) {
  const Labels labels({1, 1}, 2);
  const auto judge = labels.MakeJudge(), alone = labels.MakeJudge();
  const Tensor logits = Tensor::Of<float>({2, 2}, {0, 1, NAN, 1});
  ASSERT_OK(judge->Add(0, 2, logits, judge.get()));
  EXPECT_EQ(Recorded(*judge).top1(), 50);
  EXPECT_EQ(Recorded(*judge).agreement_with_fp32(), 50);
  ASSERT_OK(alone->Add(0, 2, logits, nullptr));
  EXPECT_FALSE(Recorded(*alone).has_agreement_with_fp32());
}

TEST(Classification, WantsAClassForEachLabel) {
  const Labels labels({0}, 3);
  const auto judge = labels.MakeJudge();
  EXPECT_THAT(judge->Add(0, 1, Tensor::Of<float>({1, 2}, {0, 1}), nullptr),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("with at least the dataset's 3 classes")));
  ASSERT_OK(judge->Add(0, 1, Tensor::Of<float>({1, 4}, {0, 1, 2, 3}), nullptr));
  EXPECT_THAT(judge->Warning(), HasSubstr("tells 4 classes apart and the dataset has 3"));
  EXPECT_EQ(Labels({0}, 0).MakeJudge(), nullptr) << "no labels";
}

// Windows of two bytes, each followed by an 'a' and a 'b'.
class NextByteTest : public ::testing::Test {
 protected:
  static std::unique_ptr<Judge> MakeJudge() {
    static constexpr uint8_t kNext[] = {'a', 'b'};
    return std::make_unique<NextByte>(2, [](int64_t) { return absl::MakeConstSpan(kNext); });
  }
  // One window, in both of whose positions 'a' has the logit log(odds), and every other byte 0.
  static Tensor Odds(double odds) {
    Tensor logits(DType::kF32, {1, 2, 256});
    std::fill_n(logits.data<float>(), 512, 0.0f);
    for (int i : {0, 1}) logits.data<float>()[256 * i + 'a'] = static_cast<float>(std::log(odds));
    return logits;
  }
};

TEST_F(NextByteTest, BitsAndDivergence) {
  const auto fp32 = MakeJudge(), int8 = MakeJudge();
  for (int64_t window : {0, 1}) {
    ASSERT_OK(fp32->Add(window, 1, Odds(1), fp32.get()));
    ASSERT_OK(int8->Add(window, 1, Odds(257), fp32.get()));
  }
  // 256 equal bytes are 8 bits.
  EXPECT_NEAR(Recorded(*fp32).bits_per_byte(), 8, 1e-6);
  EXPECT_EQ(Recorded(*fp32).kl_divergence_bits(), 0);
  // 'a' has probability 257/512, the others 1/512 each.
  const double a = std::log2(512.0 / 257), other = 9;
  EXPECT_NEAR(Recorded(*int8).bits_per_byte(), (a + other) / 2, 1e-6);
  EXPECT_NEAR(Recorded(*int8).kl_divergence_bits(), (a + 255 * other) / 256 - 8, 1e-6);
  EXPECT_FALSE(Recorded(*int8).has_top1());

  const auto alone = MakeJudge();
  ASSERT_OK(alone->Add(0, 1, Odds(257), nullptr));
  EXPECT_TRUE(Recorded(*alone).has_bits_per_byte());
  EXPECT_FALSE(Recorded(*alone).has_kl_divergence_bits());
}

TEST_F(NextByteTest, WhatIsImpossibleCostsInfinitelyManyBits) {
  const auto fp32 = MakeJudge(), int8 = MakeJudge();
  ASSERT_OK(fp32->Add(0, 1, Odds(0), fp32.get()));
  EXPECT_EQ(Recorded(*fp32).bits_per_byte(), INFINITY) << "an 'a' comes, and has probability 0";
  EXPECT_EQ(Recorded(*fp32).kl_divergence_bits(), 0) << "0 * log 0 is 0";
  ASSERT_OK(int8->Add(0, 1, Odds(1), fp32.get()));
  EXPECT_NEAR(Recorded(*int8).kl_divergence_bits(), std::log2(256.0 / 255), 1e-6);
}

TEST_F(NextByteTest, NanMakesNan) {
  for (const int64_t place : {0, 100, 255}) {
    const auto judge = MakeJudge();
    Tensor logits = Odds(1);
    logits.data<float>()[place] = NAN;
    ASSERT_OK(judge->Add(0, 1, logits, judge.get()));
    EXPECT_TRUE(std::isnan(Recorded(*judge).bits_per_byte())) << place;
    EXPECT_TRUE(std::isnan(Recorded(*judge).kl_divergence_bits())) << place;
  }
}

TEST_F(NextByteTest, WantsLogitsOfEachByte) {
  for (const Shape& shape : {Shape{1, 256}, Shape{1, 3, 256}, Shape{1, 2, 255}}) {
    EXPECT_THAT(MakeJudge()->Add(0, 1, Tensor(DType::kF32, shape), nullptr),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("want f32 [1,2,256]")));
  }
}

}  // namespace
}  // namespace fuselage::datasets
