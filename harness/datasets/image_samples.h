// ImageSamples: the images of a dataset as inputs of a network.
#ifndef FUSELAGE_HARNESS_DATASETS_IMAGE_SAMPLES_H_
#define FUSELAGE_HARNESS_DATASETS_IMAGE_SAMPLES_H_

#include <cstdint>
#include <string>
#include <utility>

#include "compiler/samples.h"
#include "harness/datasets/image_dataset.h"
#include "harness/datasets/preprocess.h"
#include "kernels/core/parallel.h"

namespace fuselage::datasets {

// Borrows the dataset and the threads. For networks of one input, f32 or u8 [n, c, h, w], or u8 [n, h, w, c].
class ImageSamples : public compiler::Samples {
 public:
  ImageSamples(const ImageDataset& dataset, Preprocessor preprocessor, kernels::Parallel* parallel)
      : compiler::Samples(parallel), dataset_(dataset), preprocessor_(std::move(preprocessor)) {}

  int64_t size() const override { return dataset_.size(); }
  // "images, inputs f32[3,224,224], sha256 ...", where the digest is of the images' pixels and of their preprocessing:
  // wherever they lie, equal images have one key.
  std::string Key(int64_t count) const override;

 private:
  absl::Status FillRow(int64_t sample, int input, Tensor* batch, int64_t row) const override;

  const ImageDataset& dataset_;
  const Preprocessor preprocessor_;
};

}  // namespace fuselage::datasets

#endif  // FUSELAGE_HARNESS_DATASETS_IMAGE_SAMPLES_H_
