// What judges make of outputs whose worth is known.
#include <cmath>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harness/datasets/classification.h"
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
  const Tensor first = Tensor::Of<float>({2, 3}, {1, 2, 3, 3, 1, 2}), second = Tensor::Of<float>({2, 3}, {0, 9, 0, 9, 9, 9});
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

}  // namespace
}  // namespace fuselage::datasets
