// Images in files, JPEG or PNG: a folder of them by class, by a list with labels, or without labels.
#ifndef FUSELAGE_HARNESS_DATASETS_IMAGE_FOLDER_H_
#define FUSELAGE_HARNESS_DATASETS_IMAGE_FOLDER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/datasets/image_dataset.h"

namespace fuselage::datasets {

// All three give the images in the order of a fixed shuffle, so that the first thousand are of all classes, and decode
// them when they are asked for. Files named .jpg, .jpeg or .png are images; their first bytes say which kind.

// <folder>/<class>/<name>.{jpg,jpeg,png}; labels number the classes in the order of their names.
absl::StatusOr<std::unique_ptr<ImageDataset>> OpenImageFolder(const std::string& folder);

// All images below the folder, at any depth, without labels.
absl::StatusOr<std::unique_ptr<ImageDataset>> OpenImages(const std::string& folder);

// A folder as OpenImageFolder reads it, or a text file with a line "<path> <class>" for each image: the path, which may
// hold spaces, is relative to the file's folder, the class a number from 0. Empty lines say nothing.
absl::StatusOr<std::unique_ptr<ImageDataset>> OpenLabelledImages(const std::string& path);

// By the signature in the first bytes; the other two know what they get.
absl::StatusOr<Image> DecodeImage(absl::string_view data, absl::string_view path);

// To RGB, or to one channel where the file is gray; transparency lies on black. At most 64 million pixels.
absl::StatusOr<Image> DecodeJpeg(absl::string_view data, absl::string_view path);
absl::StatusOr<Image> DecodePng(absl::string_view data, absl::string_view path);

}  // namespace fuselage::datasets

#endif  // FUSELAGE_HARNESS_DATASETS_IMAGE_FOLDER_H_
