// Samples: the images of a dataset as batches of the network's input.
#ifndef FUSELAGE_HARNESS_MEASURE_SAMPLES_H_
#define FUSELAGE_HARNESS_MEASURE_SAMPLES_H_

#include "harness/datasets/dataset.h"
#include "harness/datasets/preprocess.h"
#include "ir/base/tensor.h"
#include "kernels/core/parallel.h"

namespace fuselage::harness {

// Borrows all three.
class Samples {
 public:
  Samples(const datasets::Dataset& dataset, const datasets::Preprocessor& preprocessor, kernels::Parallel* parallel)
      : dataset_(dataset), preprocessor_(preprocessor), parallel_(parallel) {}

  int64_t size() const { return dataset_.size(); }
  const datasets::Dataset& dataset() const { return dataset_; }
  const datasets::Preprocessor& preprocessor() const { return preprocessor_; }

  // Images first, first + 1, ... into the rows of `batch` (f32 [n, c, h, w]); rows past `end` become zeros. Spread over
  // the threads, with the same result for any number of them.
  absl::Status Fill(int64_t first, int64_t end, Tensor* batch) const;

  // One batch of images from `first` on, beginning again at 0 after the last.
  absl::StatusOr<Tensor> Batch(int64_t first, const TensorType& type) const;

 private:
  absl::Status FillRow(int64_t image, Tensor* batch, int64_t row) const;

  const datasets::Dataset& dataset_;
  const datasets::Preprocessor& preprocessor_;
  kernels::Parallel* const parallel_;
};

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_MEASURE_SAMPLES_H_
