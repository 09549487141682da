#include "harness/datasets/open.h"

#include "absl/strings/str_cat.h"
#include "harness/base/exit_code.h"
#include "harness/datasets/cifar10.h"
#include "harness/datasets/fashion_mnist.h"
#include "harness/datasets/image_folder.h"
#include "ir/base/status.h"

namespace fuselage::datasets {

absl::StatusOr<OpenedDataset> Open(const HarnessConfig::DatasetConfig& config, HarnessConfig::Split split,
                                   const harness::SearchPath& search) {
  const bool train = split == HarnessConfig::TRAIN;
  OpenedDataset opened;
  opened.split = train ? "train" : "test";
  switch (config.kind_case()) {
    case HarnessConfig::DatasetConfig::kFashionMnist: {
      opened.name = "fashion_mnist";
      opened.path = search.Find(config.fashion_mnist().path());
      ASSIGN_OR_RETURN(opened.data, OpenFashionMnist(opened.path, train));
      break;
    }
    case HarnessConfig::DatasetConfig::kCifar10: {
      opened.name = "cifar10";
      opened.path = search.Find(config.cifar10().path());
      ASSIGN_OR_RETURN(opened.data, OpenCifar10(opened.path, train));
      break;
    }
    case HarnessConfig::DatasetConfig::kImageFolder: {
      const auto& folder = config.image_folder();
      const std::string& name = train ? folder.train() : folder.test();
      opened.name = "image_folder";
      opened.path = absl::StrCat(search.Find(folder.path()), "/", name.empty() ? opened.split : name);
      ASSIGN_OR_RETURN(opened.data, OpenImageFolder(opened.path));
      break;
    }
    case HarnessConfig::DatasetConfig::kImages: {
      // Where one of the two is not given, the other takes its place.
      const auto& images = config.images();
      const bool labelled = !images.labels().empty() && (!train || images.calibrate().empty());
      opened.name = "images";
      opened.path = search.Find(labelled ? images.labels() : images.calibrate());
      opened.split = labelled ? "labels" : "calibrate";
      ASSIGN_OR_RETURN(opened.data, labelled ? OpenLabelledImages(opened.path) : OpenImages(opened.path));
      break;
    }
    case HarnessConfig::DatasetConfig::KIND_NOT_SET:
      return UsageError("dataset: want one of fashion_mnist, cifar10, image_folder, images");
  }
  return opened;
}

}  // namespace fuselage::datasets
