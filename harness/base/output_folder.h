// OutputFolder: where runs write, without touching what is not theirs. A list in the folder, `.fuselage`, names the
// files that runs wrote there, one a line; they overwrite and remove only what it names.
#ifndef FUSELAGE_HARNESS_BASE_OUTPUT_FOLDER_H_
#define FUSELAGE_HARNESS_BASE_OUTPUT_FOLDER_H_

#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fuselage::harness {

class OutputFolder {
 public:
  explicit OutputFolder(std::string path) : path_(std::move(path)) {}

  // Before anything else. A list that cannot be read names nothing.
  void ReadList();

  const std::string& path() const { return path_; }

  // AlreadyExists where a file `name` is there and not listed.
  absl::Status MayWrite(const std::string& name) const;

  // Lists what it may write, and returns its path.
  absl::StatusOr<std::string> Claim(const std::string& name);

  // Claims it and writes `contents`, atomically.
  absl::Status Write(const std::string& name, absl::string_view contents);

  // Removes the listed files but those in `kept`, no folders.
  void RemoveListed(const std::set<std::string>& kept);

 private:
  absl::Status WriteList() const;

  std::string path_;
  std::set<std::string> names_;
};

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_BASE_OUTPUT_FOLDER_H_
