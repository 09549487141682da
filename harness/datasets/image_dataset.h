// ImageDataset: u8 images, with or without labels.
#ifndef FUSELAGE_HARNESS_DATASETS_IMAGE_DATASET_H_
#define FUSELAGE_HARNESS_DATASETS_IMAGE_DATASET_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/datasets/dataset.h"

namespace fuselage::datasets {

// height x width x channels, channels innermost; 1 channel (gray) or 3 (red, green, blue).
struct Image {
  int height = 0, width = 0, channels = 0;
  std::vector<uint8_t> pixels;
};

// For networks of one input, f32 or u8 [batch, channels, height, width], or u8 [batch, height, width, channels]; those
// of labelled images are judged as classifiers.
class ImageDataset : public Dataset {
 public:
  virtual int num_classes() const = 0;  // 0: the images have no labels.

  // 0 <= i < size(). Labels are in [0, num_classes()); not to be asked for where there are none.
  virtual int label(int64_t i) const = 0;
  virtual absl::StatusOr<Image> image(int64_t i) const = 0;

  const char* unit() const override { return "image"; }
  absl::StatusOr<std::unique_ptr<compiler::Samples>> Inputs(const ir::Graph& graph,
                                                            const HarnessConfig::Preprocessing& preprocessing,
                                                            kernels::Parallel* parallel) const override;
  std::unique_ptr<Judge> MakeJudge() const override;
};

}  // namespace fuselage::datasets

#endif  // FUSELAGE_HARNESS_DATASETS_IMAGE_DATASET_H_
