// A folder of images by class: <folder>/<class>/<name>.{jpg,jpeg,png}.
#ifndef FUSELAGE_HARNESS_DATASETS_IMAGE_FOLDER_H_
#define FUSELAGE_HARNESS_DATASETS_IMAGE_FOLDER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/datasets/dataset.h"

namespace fuselage::datasets {

// Labels number the classes in the order of their names; images come in the order of a fixed shuffle, so that the first
// thousand are of all classes. Images are decoded when they are asked for.
absl::StatusOr<std::unique_ptr<Dataset>> OpenImageFolder(const std::string& folder);

// To RGB, or to one channel where the file is gray; transparency lies on black. At most 64 million pixels.
absl::StatusOr<Image> DecodeJpeg(absl::string_view data, absl::string_view path);
absl::StatusOr<Image> DecodePng(absl::string_view data, absl::string_view path);

}  // namespace fuselage::datasets

#endif  // FUSELAGE_HARNESS_DATASETS_IMAGE_FOLDER_H_
