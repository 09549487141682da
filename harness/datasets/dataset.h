// Dataset: u8 images, by index, with or without labels.
#ifndef FUSELAGE_HARNESS_DATASETS_DATASET_H_
#define FUSELAGE_HARNESS_DATASETS_DATASET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace fuselage::datasets {

// height x width x channels, channels innermost; 1 channel (gray) or 3 (red, green, blue).
struct Image {
  int height = 0, width = 0, channels = 0;
  std::vector<uint8_t> pixels;
};

// Immutable once opened: any thread may read. Opening checks the files; errors name the file and the place in it.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual int64_t size() const = 0;
  virtual int num_classes() const = 0;  // 0: the images have no labels.

  // 0 <= i < size(). Labels are in [0, num_classes()); not to be asked for where there are none.
  virtual int label(int64_t i) const = 0;
  virtual absl::StatusOr<Image> image(int64_t i) const = 0;
};

}  // namespace fuselage::datasets

#endif  // FUSELAGE_HARNESS_DATASETS_DATASET_H_
