// CIFAR-10 (Krizhevsky, 2009), the binary version: records of a label byte and 3x32x32 bytes, red, green, blue planes.
#ifndef FUSELAGE_HARNESS_DATASETS_CIFAR10_H_
#define FUSELAGE_HARNESS_DATASETS_CIFAR10_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "harness/datasets/image_dataset.h"

namespace fuselage::datasets {

// Reads test_batch.bin, or all of data_batch_1.bin ... data_batch_5.bin, below `folder`.
absl::StatusOr<std::unique_ptr<ImageDataset>> OpenCifar10(const std::string& folder, bool train);

}  // namespace fuselage::datasets

#endif  // FUSELAGE_HARNESS_DATASETS_CIFAR10_H_
