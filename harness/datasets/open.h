// The dataset that a config names.
#ifndef FUSELAGE_HARNESS_DATASETS_OPEN_H_
#define FUSELAGE_HARNESS_DATASETS_OPEN_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/base/files.h"
#include "harness/config.pb.h"
#include "harness/datasets/dataset.h"

namespace fuselage::datasets {

struct OpenedDataset {
  std::string name;   // The config's field: "fashion_mnist".
  std::string path;   // As found.
  std::string split;  // "train", "test"; of the kind `images`: "calibrate", "labels".
  std::unique_ptr<Dataset> data;
};

// What accuracy on such a dataset is: "top1" or "bits_per_byte", by the field of Results.Variant; "": nothing, for want
// of labels.
absl::string_view AccuracyOf(const HarnessConfig::DatasetConfig& config);

// What keeps Open from knowing what to open; "" where nothing does.
std::string FaultOf(const HarnessConfig::DatasetConfig& config);

absl::StatusOr<OpenedDataset> Open(const HarnessConfig::DatasetConfig& config, HarnessConfig::Split split,
                                   const harness::SearchPath& search);

}  // namespace fuselage::datasets

#endif  // FUSELAGE_HARNESS_DATASETS_OPEN_H_
