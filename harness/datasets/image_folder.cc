#include "harness/datasets/image_folder.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "ir/base/status.h"

namespace fuselage::datasets {
namespace {

namespace fs = std::filesystem;

bool IsJpeg(const std::string& extension) { return extension == ".jpg" || extension == ".jpeg"; }

class ImageFolder : public Dataset {
 public:
  struct Entry {
    std::string path;
    int label;
  };
  ImageFolder(std::vector<Entry> entries, int classes) : entries_(std::move(entries)), classes_(classes) {}

  int64_t size() const override { return static_cast<int64_t>(entries_.size()); }
  int num_classes() const override { return classes_; }
  int label(int64_t i) const override { return entries_[i].label; }
  absl::StatusOr<Image> image(int64_t i) const override {
    const std::string& path = entries_[i].path;
    ASSIGN_OR_RETURN(const std::string data, harness::ReadFile(path));
    return IsJpeg(absl::AsciiStrToLower(fs::path(path).extension().string())) ? DecodeJpeg(data, path)
                                                                              : DecodePng(data, path);
  }

 private:
  std::vector<Entry> entries_;
  int classes_;
};

// The paths in a folder that `keep` accepts, sorted.
template <typename Keep>
absl::StatusOr<std::vector<std::string>> List(const std::string& folder, Keep keep) {
  std::error_code error;
  std::vector<std::string> paths;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (keep(*it)) paths.push_back(it->path().string());
  }
  if (error) return harness::ErrnoError(error.value(), "cannot list", folder);
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Dataset>> OpenImageFolder(const std::string& folder) {
  std::error_code ignored;
  ASSIGN_OR_RETURN(const std::vector<std::string> classes,
                   List(folder, [&](const fs::directory_entry& entry) { return entry.is_directory(ignored); }));
  std::vector<ImageFolder::Entry> entries;
  for (size_t label = 0; label < classes.size(); ++label) {
    ASSIGN_OR_RETURN(const std::vector<std::string> images, List(classes[label], [&](const fs::directory_entry& entry) {
                       const std::string extension = absl::AsciiStrToLower(entry.path().extension().string());
                       return (IsJpeg(extension) || extension == ".png") && entry.is_regular_file(ignored);
                     }));
    for (const std::string& image : images) entries.push_back({image, static_cast<int>(label)});
  }
  if (entries.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder, ": has no images; want <class>/<name>.jpg, .jpeg or .png below it"));
  }
  // Fisher-Yates with a fixed linear congruential generator (Knuth's MMIX): the same order on every machine.
  uint64_t state = 1;
  for (size_t i = entries.size() - 1; i > 0; --i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    std::swap(entries[i], entries[(state >> 33) % (i + 1)]);
  }
  return std::make_unique<ImageFolder>(std::move(entries), static_cast<int>(classes.size()));
}

}  // namespace fuselage::datasets
