// u8 images to the network's input: resize; /255, (x - mean) / std, where it takes floats.
#ifndef FUSELAGE_HARNESS_DATASETS_PREPROCESS_H_
#define FUSELAGE_HARNESS_DATASETS_PREPROCESS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "harness/datasets/image_dataset.h"

namespace fuselage::datasets {

struct PreprocessOptions {
  int height = 0, width = 0, channels = 0;  // The result's.
  std::vector<float> mean, std;             // None (0 and 1), one for all channels, or one each.
  // The shorter side is resized to so many pixels, at least the larger of height and width, and the centre is cropped
  // (resample.h). 0: the image is resized to height x width.
  int shorter_side = 0;
  bool bytes = false, pixels = false;  // Of what Run writes: u8 in place of floats; [h, w, c] in place of [c, h, w].
};

// Immutable: any thread may run it.
class Preprocessor {
 public:
  static absl::StatusOr<Preprocessor> Create(PreprocessOptions options);

  // Writes channels x height x width floats. Without a shorter_side the resize samples at half-pixel centres, clamps at
  // the edges and does not antialias: torch's interpolate(mode="bilinear", align_corners=False), in its order of float
  // operations. A gray image is resized once and repeated over the channels; another number of channels than the
  // result's is an error.
  absl::Status Run(const Image& image, absl::Span<float> out) const;
  // The same for a network that takes bytes: the nearest ones, neither mean nor std applied.
  absl::Status Run(const Image& image, absl::Span<uint8_t> out) const;

  const PreprocessOptions& options() const { return options_; }

 private:
  explicit Preprocessor(PreprocessOptions options) : options_(std::move(options)) {}

  // Of as many channels as the image, in [0, 1].
  absl::Status Planes(const Image& image, absl::Span<float> out) const;

  PreprocessOptions options_;
};

}  // namespace fuselage::datasets

#endif  // FUSELAGE_HARNESS_DATASETS_PREPROCESS_H_
