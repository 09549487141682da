#include "harness/base/output_folder.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "harness/base/files.h"
#include "ir/base/status.h"

namespace fuselage::harness {
namespace {

constexpr char kList[] = ".fuselage";

}  // namespace

void OutputFolder::ReadList() {
  const absl::StatusOr<std::string> list = ReadFile(absl::StrCat(path_, "/", kList));
  if (!list.ok()) return;
  for (absl::string_view name : absl::StrSplit(*list, '\n', absl::SkipEmpty())) {
    // Nothing outside of the folder is ours, whatever somebody wrote into the list.
    if (name.find('/') == absl::string_view::npos) names_.insert(std::string(name));
  }
}

absl::Status OutputFolder::WriteList() const {
  return WriteFileAtomic(absl::StrCat(path_, "/", kList), absl::StrCat(absl::StrJoin(names_, "\n"), "\n"));
}

absl::Status OutputFolder::MayWrite(const std::string& name) const {
  const std::string path = absl::StrCat(path_, "/", name);
  std::error_code error;
  if (names_.count(name) > 0 ||
      std::filesystem::symlink_status(path, error).type() == std::filesystem::file_type::not_found) {
    return absl::OkStatus();
  }
  return absl::AlreadyExistsError(absl::StrCat(path, " is not of an earlier run (", path_, "/", kList,
                                               " does not list it), and stays; move it, or write elsewhere"));
}

absl::StatusOr<std::string> OutputFolder::Claim(const std::string& name) {
  RETURN_IF_ERROR(MayWrite(name));
  if (names_.insert(name).second) RETURN_IF_ERROR(WriteList());
  return absl::StrCat(path_, "/", name);
}

absl::Status OutputFolder::Write(const std::string& name, absl::string_view contents) {
  ASSIGN_OR_RETURN(const std::string path, Claim(name));
  return WriteFileAtomic(path, contents);
}

void OutputFolder::RemoveListed(const std::set<std::string>& kept) {
  for (const std::string& name : names_) {
    // What cannot be removed, such as a folder, stays listed as well.
    if (kept.count(name) == 0) unlink(absl::StrCat(path_, "/", name).c_str());
  }
}

}  // namespace fuselage::harness
