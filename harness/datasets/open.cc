#include "harness/datasets/open.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/base/exit_code.h"
#include "harness/datasets/cifar10.h"
#include "harness/datasets/fashion_mnist.h"
#include "harness/datasets/image_folder.h"
#include "harness/datasets/text.h"
#include "ir/base/status.h"

namespace fuselage::datasets {
namespace {

const google::protobuf::OneofDescriptor& Kinds() {
  return *HarnessConfig::DatasetConfig::descriptor()->FindOneofByName("kind");
}

}  // namespace

absl::string_view AccuracyOf(const HarnessConfig::DatasetConfig& config) {
  if (config.has_text()) return "bits_per_byte";
  return config.has_images() && config.images().labels().empty() ? "" : "top1";
}

std::string FaultOf(const HarnessConfig::DatasetConfig& config) {
  const auto want_folder = [](const std::string& path) {
    return path.empty() ? "the dataset's path is empty, want a folder" : "";
  };
  switch (config.kind_case()) {
    case HarnessConfig::DatasetConfig::kFashionMnist: return "";
    case HarnessConfig::DatasetConfig::kCifar10: return want_folder(config.cifar10().path());
    case HarnessConfig::DatasetConfig::kImageFolder: return want_folder(config.image_folder().path());
    case HarnessConfig::DatasetConfig::kImages:
      if (!config.images().calibrate().empty() || !config.images().labels().empty()) return "";
      return "dataset.images is empty, want calibrate, labels or both";
    case HarnessConfig::DatasetConfig::kText:
      if (config.text().path().empty()) return "dataset.text.path is empty, want a file";
      if (config.text().window() < 1) return "dataset.text.window is below 1, want bytes";
      return config.text().test_bytes() < 1 ? "dataset.text.test_bytes is below 1, want bytes" : "";
    case HarnessConfig::DatasetConfig::KIND_NOT_SET: break;
  }
  std::vector<std::string> names;
  for (int i = 0; i < Kinds().field_count(); ++i) names.emplace_back(Kinds().field(i)->name());
  return absl::StrCat("dataset is empty, want one of ", absl::StrJoin(names, ", "));
}

absl::StatusOr<OpenedDataset> Open(const HarnessConfig::DatasetConfig& config, HarnessConfig::Split split,
                                   const harness::SearchPath& search) {
  if (const std::string fault = FaultOf(config); !fault.empty()) return UsageError(fault);
  const bool train = split == HarnessConfig::TRAIN;
  OpenedDataset opened;
  opened.name = config.GetReflection()->GetOneofFieldDescriptor(config, &Kinds())->name();
  opened.split = train ? "train" : "test";
  switch (config.kind_case()) {
    case HarnessConfig::DatasetConfig::kFashionMnist: {
      const std::string& path = config.fashion_mnist().path();
      opened.path = path.empty() ? FashionMnistFolder() : search.Find(path);
      ASSIGN_OR_RETURN(opened.data, OpenFashionMnist(opened.path, train));
      break;
    }
    case HarnessConfig::DatasetConfig::kCifar10: {
      opened.path = search.Find(config.cifar10().path());
      ASSIGN_OR_RETURN(opened.data, OpenCifar10(opened.path, train));
      break;
    }
    case HarnessConfig::DatasetConfig::kImageFolder: {
      const auto& folder = config.image_folder();
      const std::string& name = train ? folder.train() : folder.test();
      opened.path = absl::StrCat(search.Find(folder.path()), "/", name.empty() ? opened.split : name);
      ASSIGN_OR_RETURN(opened.data, OpenImageFolder(opened.path));
      break;
    }
    case HarnessConfig::DatasetConfig::kImages: {
      // Where one of the two is not given, the other takes its place.
      const auto& images = config.images();
      const bool labelled = !images.labels().empty() && (!train || images.calibrate().empty());
      opened.path = search.Find(labelled ? images.labels() : images.calibrate());
      opened.split = labelled ? "labels" : "calibrate";
      ASSIGN_OR_RETURN(opened.data, labelled ? OpenLabelledImages(opened.path) : OpenImages(opened.path));
      break;
    }
    case HarnessConfig::DatasetConfig::kText: {
      opened.path = search.Find(config.text().path());
      ASSIGN_OR_RETURN(opened.data, OpenText(opened.path, {config.text().window(), config.text().test_bytes()}, train));
      break;
    }
    case HarnessConfig::DatasetConfig::KIND_NOT_SET: break;
  }
  return opened;
}

}  // namespace fuselage::datasets
