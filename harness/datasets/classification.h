// Classification: how many images a network tells right.
#ifndef FUSELAGE_HARNESS_DATASETS_CLASSIFICATION_H_
#define FUSELAGE_HARNESS_DATASETS_CLASSIFICATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "harness/datasets/image_dataset.h"

namespace fuselage::datasets {

// Top-1, top-5, and agreement with the baseline: the images for which both predict the same class; NaN logits predict
// none. For networks whose first output is f32 [batch, classes], with a class at least for each of the labels.
class Classification : public Judge {
 public:
  explicit Classification(const ImageDataset& dataset) : dataset_(dataset) {}

  absl::Status Add(int64_t first, int64_t rows, const Tensor& output, const Judge* baseline) override;
  void Record(Results::Variant* result) const override;
  std::string Warning() const override;

 private:
  const ImageDataset& dataset_;
  int64_t classes_ = 0;    // The network's.
  std::vector<int> top1_;  // The predicted class of each image; -1 where a logit is NaN.
  int64_t correct1_ = 0;   // Images whose label is the predicted class,
  int64_t correct5_ = 0;   // or among the five highest logits.
  int64_t agreed_ = 0;
  bool compared_ = false;  // There is a baseline.
};

// The place of `label` when logits are sorted from the highest down, equal ones by class; -1 where a logit is NaN.
int RankOf(absl::Span<const float> logits, int label);

}  // namespace fuselage::datasets

#endif  // FUSELAGE_HARNESS_DATASETS_CLASSIFICATION_H_
