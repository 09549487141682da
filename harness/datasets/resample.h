// u8 image, shrunk or enlarged => the same bits that Pillow's Image.resize(..., BILINEAR) gives.
#ifndef FUSELAGE_HARNESS_DATASETS_RESAMPLE_H_
#define FUSELAGE_HARNESS_DATASETS_RESAMPLE_H_

#include <cstdint>

#include "harness/datasets/image_dataset.h"

namespace fuselage::datasets {

// A part of the resized image, in its pixels.
struct Window {
  int64_t resized_height = 0, resized_width = 0;  // What the whole image is resized to.
  int64_t top = 0, left = 0;
  int height = 0, width = 0;
};

// What torchvision's Resize(shorter_side) and CenterCrop((height, width)) leave of an image. `shorter_side` is at least
// the larger of `height` and `width`, so that no side is too short.
Window CenterOf(const Image& image, int shorter_side, int height, int width);

// The triangle filter stretched by the ratio of the sizes where that is above 1, so that every source pixel counts
// (antialiasing); along x, then along y, with weights of 22 fractional bits and u8 between the two.
Image Resample(const Image& image, const Window& window);

}  // namespace fuselage::datasets

#endif  // FUSELAGE_HARNESS_DATASETS_RESAMPLE_H_
