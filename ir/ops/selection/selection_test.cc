#include "ir/ops/selection/selection.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::selection {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class SelectionTest : public ::testing::Test {
 protected:
  // The rows that there are, those behind checked to be 0.
  std::vector<int64_t> Rows(const std::vector<Tensor>& results) {
    const auto all = results[0].values<int64_t>();
    std::vector<int64_t> rows(all.begin(), all.end());
    const auto count = static_cast<size_t>(results[1].values<int64_t>()[0] * results[0].dim(1));
    for (size_t i = count; i < rows.size(); ++i) EXPECT_EQ(rows[i], 0);
    rows.resize(count);
    return rows;
  }
  // The boxes that are kept of one image and class.
  std::vector<int64_t> Nms(std::vector<float> boxes, std::vector<float> scores, AttributeMap attributes) {
    const auto n = static_cast<int64_t>(scores.size());
    attributes.emplace("max_output_boxes_per_class", n);
    std::vector<int64_t> kept;
    const std::vector<int64_t> rows = Rows(
        *ops_.RunAll("nms", {Tensor::Of<float>({1, n, 4}, boxes), Tensor::Of<float>({1, 1, n}, scores)}, attributes));
    for (size_t i = 2; i < rows.size(); i += 3) kept.push_back(rows[i]);
    return kept;
  }

  const OpTester ops_{Register};
};

TEST_F(SelectionTest, PositionsThatAreNotZero) {
  EXPECT_THAT(Rows(*ops_.RunAll("nonzero", {Tensor::Of<float>({2, 3}, {0, 1, -0.0f, kNan, 0, 2})})),
              ElementsAre(0, 1, 1, 0, 1, 2));
  EXPECT_THAT(Rows(*ops_.RunAll("nonzero", {Tensor::Of<bool>({3}, {true, false, true})})), ElementsAre(0, 2));
  EXPECT_THAT(Rows(*ops_.RunAll("nonzero", {Tensor::Of<int64_t>({2}, {0, 0})})), IsEmpty());
  EXPECT_EQ((*ops_.RunAll("nonzero", {Tensor::Of<float>({}, {7})}))[1].values<int64_t>()[0], 1);
}

// Of three boxes of height 1 the second shares a half with the first, a third of what both cover, and the third is the
// second moved by a fourth.
TEST_F(SelectionTest, BoxesThatOverlapLittle) {
  const std::vector<float> boxes = {0, 0, 1, 2, 0, 1, 1, 3, 0, 1.5f, 1, 3.5f}, scores = {0.5f, 0.9f, 0.8f};
  EXPECT_THAT(Nms(boxes, scores, {{"iou_threshold", 0.7}}), ElementsAre(1, 2, 0));
  EXPECT_THAT(Nms(boxes, scores, {{"iou_threshold", 0.5}}), ElementsAre(1, 0));
  EXPECT_THAT(Nms(boxes, scores, {{"iou_threshold", 0.25}}), ElementsAre(1));
  EXPECT_THAT(Nms(boxes, scores, {}), ElementsAre(1));
  // Not more than the threshold: a box that one before covers by half.
  EXPECT_THAT(Nms({0, 0, 1, 2, 0, 0, 1, 1}, {2, 1}, {{"iou_threshold", 0.5}}), ElementsAre(0, 1));
}

TEST_F(SelectionTest, ScoresAboveTheThresholdTheFirstOfEqualOnes) {
  const std::vector<float> apart = {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7};
  EXPECT_THAT(Nms(apart, {0.5f, 0.75f, 0.5f, 0.25f}, {{"score_threshold", 0.25}}), ElementsAre(1, 0, 2));
  EXPECT_THAT(Nms(apart, {0.5f, kNan, 0.5f, -1}, {}), ElementsAre(0, 2, 3));
  EXPECT_THAT(Nms(apart, {1, 2, 3, 4}, {{"max_output_boxes_per_class", 2}}), ElementsAre(3, 2));
  EXPECT_THAT(Nms(apart, {1, 2, 3, 4}, {{"max_output_boxes_per_class", 0}}), IsEmpty());
}

TEST_F(SelectionTest, BoxesByOppositeCornersOrTheirCenter) {
  // The same box, from any two corners.
  EXPECT_THAT(Nms({0, 0, 1, 2, 1, 2, 0, 0, 1, 0, 0, 2, 0, 2, 1, 0}, {1, 1, 1, 1}, {{"iou_threshold", 0.9}}),
              ElementsAre(0));
  // One around (1, 1) of width 2, and its right half.
  const std::vector<float> boxes = {1, 1, 2, 1, 1.5f, 1, 1, 1};
  EXPECT_THAT(Nms(boxes, {1, 2}, {{"center_point_box", true}, {"iou_threshold", 0.45}}), ElementsAre(1));
  EXPECT_THAT(Nms(boxes, {1, 2}, {{"center_point_box", true}, {"iou_threshold", 0.55}}), ElementsAre(1, 0));
  // Without an area a box overlaps none, not even itself.
  EXPECT_THAT(Nms({1, 1, 1, 4, 1, 1, 1, 4}, {1, 1}, {}), ElementsAre(0, 1));
}

TEST_F(SelectionTest, ImagesAndClassesInTurn) {
  const Tensor boxes = Tensor::Of<float>({2, 2, 4}, {0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3});
  const Tensor scores = Tensor::Of<float>({2, 2, 2}, {1, 2, 0, 0, 1, 2, 3, 2});
  EXPECT_THAT(Rows(*ops_.RunAll("nms", {boxes, scores},
                                {{"max_output_boxes_per_class", 5}, {"score_threshold", 0.5}, {"iou_threshold", 0.5}})),
              ElementsAre(0, 0, 1, 1, 0, 1, 1, 0, 0, 1, 1, 0, 1, 1, 1));
}

TEST_F(SelectionTest, TypesAndErrors) {
  const TensorType boxes{DType::kF32, {2, 5, 4}, std::nullopt, Layout::kRowMajor};
  TensorType scores = boxes;
  scores.shape = {2, 3, 5};
  EXPECT_EQ(ops_.Infer("nonzero", {boxes}), "(i64[40,3], i64[1])");
  EXPECT_EQ(ops_.Infer("nms", {boxes, scores}, {{"max_output_boxes_per_class", 2}}), "(i64[12,3], i64[1])");
  EXPECT_EQ(ops_.Infer("nms", {boxes, scores}, {{"max_output_boxes_per_class", INT64_MAX}}), "(i64[30,3], i64[1])");
  EXPECT_THAT(ops_.Infer("nms", {boxes, scores}, {{"max_output_boxes_per_class", -1}}),
              HasSubstr("wanted a number >= 0"));
  EXPECT_THAT(ops_.Infer("nms", {boxes, boxes}, {{"max_output_boxes_per_class", 2}}), HasSubstr("boxes"));
  TensorType codes = boxes;
  codes.dtype = DType::kU8;
  codes.quant = PerTensor(0.5f);
  EXPECT_THAT(ops_.Infer("nonzero", {codes}), HasSubstr("input"));
}

}  // namespace
}  // namespace fuselage::ops::selection
