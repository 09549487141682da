#include "harness/datasets/cifar10.h"

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "ir/base/status.h"

namespace fuselage::datasets {
namespace {

constexpr int kClasses = 10;
constexpr int kSide = 32;
constexpr int kPlane = kSide * kSide;
constexpr int64_t kRecord = 1 + 3 * kPlane;

class Cifar10 : public ImageDataset {
 public:
  explicit Cifar10(std::string records) : records_(std::move(records)) {}

  int64_t size() const override { return static_cast<int64_t>(records_.size()) / kRecord; }
  int num_classes() const override { return kClasses; }
  int label(int64_t i) const override { return static_cast<uint8_t>(records_[i * kRecord]); }
  absl::StatusOr<Image> image(int64_t i) const override {
    Image image{kSide, kSide, 3, std::vector<uint8_t>(3 * kPlane)};
    const char* planes = records_.data() + i * kRecord + 1;
    for (int pixel = 0; pixel < kPlane; ++pixel) {
      for (int c = 0; c < 3; ++c) image.pixels[3 * pixel + c] = static_cast<uint8_t>(planes[c * kPlane + pixel]);
    }
    return image;
  }

 private:
  std::string records_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ImageDataset>> OpenCifar10(const std::string& folder, bool train) {
  std::vector<std::string> paths;
  if (train) {
    for (int batch = 1; batch <= 5; ++batch) paths.push_back(absl::StrCat(folder, "/data_batch_", batch, ".bin"));
  } else {
    paths.push_back(absl::StrCat(folder, "/test_batch.bin"));
  }
  std::string records;
  for (const std::string& path : paths) {
    if (!harness::FileExists(path)) {
      return absl::NotFoundError(absl::StrCat("CIFAR-10 is not in ", folder, " (no ", path,
                                              "): unpack cifar-10-binary.tar.gz there, or set dataset.cifar10.path"));
    }
    ASSIGN_OR_RETURN(const std::string batch, harness::ReadFile(path));
    const int64_t size = static_cast<int64_t>(batch.size());
    if (size == 0 || size % kRecord != 0) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": ends at byte ", size, ", inside record ", size / kRecord,
                                                     "; want records of ", kRecord, " bytes"));
    }
    for (int64_t i = 0; i < size / kRecord; ++i) {
      const int label = static_cast<uint8_t>(batch[i * kRecord]);
      if (label >= kClasses) {
        return absl::InvalidArgumentError(
            absl::StrCat(path, ": label ", label, " at byte ", i * kRecord, ", want less than ", kClasses));
      }
    }
    records += batch;
  }
  return std::make_unique<Cifar10>(std::move(records));
}

}  // namespace fuselage::datasets
