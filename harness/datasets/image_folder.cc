#include "harness/datasets/image_folder.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "harness/base/files.h"
#include "harness/datasets/shuffle.h"
#include "ir/base/status.h"

namespace fuselage::datasets {
namespace {

namespace fs = std::filesystem;

constexpr int kMostClasses = 1000000;

bool IsImage(const fs::directory_entry& entry) {
  const std::string extension = absl::AsciiStrToLower(entry.path().extension().string());
  std::error_code ignored;
  return (extension == ".jpg" || extension == ".jpeg" || extension == ".png") && entry.is_regular_file(ignored);
}

class ImageFiles : public ImageDataset {
 public:
  struct Entry {
    std::string path;
    int label = 0;
  };
  // At least one entry; `classes` is 0 where labels mean nothing.
  ImageFiles(std::vector<Entry> entries, int classes) : entries_(std::move(entries)), classes_(classes) {
    Shuffle(&entries_);
  }

  int64_t size() const override { return static_cast<int64_t>(entries_.size()); }
  int num_classes() const override { return classes_; }
  int label(int64_t i) const override { return entries_[i].label; }
  absl::StatusOr<Image> image(int64_t i) const override {
    const std::string& path = entries_[i].path;
    ASSIGN_OR_RETURN(const std::string data, harness::ReadFile(path));
    return DecodeImage(data, path);
  }

 private:
  std::vector<Entry> entries_;
  int classes_;
};

// The paths that `Iterator` finds in a folder and `keep` accepts, sorted.
template <typename Iterator, typename Keep>
absl::StatusOr<std::vector<std::string>> List(const std::string& folder, Keep keep) {
  std::error_code error;
  std::vector<std::string> paths;
  for (Iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (keep(*it)) paths.push_back(it->path().string());
  }
  if (error) return harness::ErrnoError(error.value(), "cannot list", folder);
  std::sort(paths.begin(), paths.end());
  return paths;
}

absl::Status NoImages(absl::string_view path, absl::string_view want) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": has no images; want ", want));
}

// A line of a list of labels; `folder` is the list's.
absl::StatusOr<ImageFiles::Entry> ParseLine(absl::string_view line, const fs::path& folder) {
  const size_t space = line.find_last_of(" \t");
  ImageFiles::Entry entry;
  if (space == absl::string_view::npos || !absl::SimpleAtoi(line.substr(space + 1), &entry.label) || entry.label < 0 ||
      entry.label >= kMostClasses) {
    return absl::InvalidArgumentError(absl::StrCat("found \"", line.substr(0, 200), "\", wanted \"<path> <class>\", ",
                                                   "with a class from 0 to ", kMostClasses - 1));
  }
  entry.path = (folder / std::string(absl::StripTrailingAsciiWhitespace(line.substr(0, space)))).string();
  std::error_code ignored;
  if (!fs::is_regular_file(entry.path, ignored)) {
    return absl::InvalidArgumentError(absl::StrCat("found no file ", entry.path, ", wanted an image there"));
  }
  return entry;
}

absl::StatusOr<std::unique_ptr<ImageDataset>> OpenImageList(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, harness::ReadFile(path));
  std::vector<ImageFiles::Entry> entries;
  int classes = 0, line_number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++line_number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty()) continue;
    absl::StatusOr<ImageFiles::Entry> entry = ParseLine(line, fs::path(path).parent_path());
    if (!entry.ok()) return Annotate(entry.status(), absl::StrCat(path, ":", line_number));
    classes = std::max(classes, entry->label + 1);
    entries.push_back(*std::move(entry));
  }
  if (entries.empty()) return NoImages(path, "a line \"<path> <class>\" for each");
  return std::make_unique<ImageFiles>(std::move(entries), classes);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ImageDataset>> OpenImageFolder(const std::string& folder) {
  std::error_code ignored;
  ASSIGN_OR_RETURN(const std::vector<std::string> classes,
                   List<fs::directory_iterator>(
                       folder, [&](const fs::directory_entry& entry) { return entry.is_directory(ignored); }));
  std::vector<ImageFiles::Entry> entries;
  for (size_t label = 0; label < classes.size(); ++label) {
    ASSIGN_OR_RETURN(const std::vector<std::string> images, List<fs::directory_iterator>(classes[label], IsImage));
    for (const std::string& image : images) entries.push_back({image, static_cast<int>(label)});
  }
  if (entries.empty()) return NoImages(folder, "<class>/<name>.jpg, .jpeg or .png below it");
  return std::make_unique<ImageFiles>(std::move(entries), static_cast<int>(classes.size()));
}

absl::StatusOr<std::unique_ptr<ImageDataset>> OpenImages(const std::string& folder) {
  ASSIGN_OR_RETURN(const std::vector<std::string> images, List<fs::recursive_directory_iterator>(folder, IsImage));
  std::vector<ImageFiles::Entry> entries;
  for (const std::string& image : images) entries.push_back({image});
  if (entries.empty()) return NoImages(folder, ".jpg, .jpeg or .png files below it");
  return std::make_unique<ImageFiles>(std::move(entries), /*classes=*/0);
}

absl::StatusOr<std::unique_ptr<ImageDataset>> OpenLabelledImages(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored) ? OpenImageFolder(path) : OpenImageList(path);
}

}  // namespace fuselage::datasets
