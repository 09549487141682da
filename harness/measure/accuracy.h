// Accuracy: the first images of a dataset through an engine.
#ifndef FUSELAGE_HARNESS_MEASURE_ACCURACY_H_
#define FUSELAGE_HARNESS_MEASURE_ACCURACY_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/engine.h"
#include "harness/measure/image_samples.h"

namespace fuselage::harness {

struct Predictions {
  int64_t classes = 0;      // The network's; at least as many as the dataset has.
  std::vector<int> top1;    // The predicted class of each image; -1 where a logit is NaN.
  int64_t correct1 = 0;     // Images whose label is the predicted class,
  int64_t correct5 = 0;     // or among the five highest logits.
  std::string fingerprint;  // All logits' bits in order of the images, whatever the batch, as 16 hex digits.
};

// InvalidArgument where the engine's first output is not f32 [batch, classes] with a class for each of the labels.
absl::StatusOr<Predictions> Evaluate(compiler::Engine& engine, const ImageSamples& samples, int64_t images,
                                     const std::function<void(int64_t done)>& progress);

// The place of `label` when logits are sorted from the highest down, equal ones by class; -1 where a logit is NaN.
int RankOf(absl::Span<const float> logits, int label);

// Percent of images for which both predict the same class; NaN logits predict none.
double Agreement(const Predictions& a, const Predictions& b);

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_MEASURE_ACCURACY_H_
