// ImageSamples: the images of a dataset as inputs of a network.
#ifndef FUSELAGE_HARNESS_MEASURE_IMAGE_SAMPLES_H_
#define FUSELAGE_HARNESS_MEASURE_IMAGE_SAMPLES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/samples.h"
#include "harness/datasets/dataset.h"
#include "harness/datasets/preprocess.h"
#include "ir/graph.h"
#include "kernels/core/parallel.h"

namespace fuselage::harness {

// Borrows all three. For networks of one input, f32 [n, c, h, w].
class ImageSamples : public compiler::Samples {
 public:
  ImageSamples(const datasets::Dataset& dataset, const datasets::Preprocessor& preprocessor,
               kernels::Parallel* parallel)
      : compiler::Samples(parallel), dataset_(dataset), preprocessor_(preprocessor) {}

  int64_t size() const override { return dataset_.size(); }
  // "images, inputs f32[3,224,224], sha256 ...", where the digest is of the images' pixels and of their preprocessing:
  // wherever they lie, equal images have one key.
  std::string Key(int64_t count) const override;
  const datasets::Dataset& dataset() const { return dataset_; }

 private:
  absl::Status FillRow(int64_t sample, int input, Tensor* batch, int64_t row) const override;

  const datasets::Dataset& dataset_;
  const datasets::Preprocessor& preprocessor_;
};

// The graph's one input, f32 [batch, channels, height, width]; an error says what was found instead.
absl::StatusOr<TensorType> ImageInputOf(const ir::Graph& graph);

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_MEASURE_IMAGE_SAMPLES_H_
