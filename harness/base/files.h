// Files: whole reads, atomic writes, and where a name that the user gave leads.
#ifndef FUSELAGE_HARNESS_BASE_FILES_H_
#define FUSELAGE_HARNESS_BASE_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace fuselage::harness {

// "<what> <path>: <text of errno>", with the code that errno means: NotFound, PermissionDenied, ... Unavailable.
absl::Status ErrnoError(int error, absl::string_view what, absl::string_view path);

// A descriptor to read from, which the caller closes. What is no regular file is Unavailable, at once.
absl::StatusOr<int> OpenRegularFile(const std::string& path);

// All of a regular file.
absl::StatusOr<std::string> ReadFile(const std::string& path);

// The SHA-256 of regular files one behind the other, as `cat a b | sha256sum` has it, and their size together.
struct FileDigest {
  std::string sha256;
  int64_t bytes = 0;
};
absl::StatusOr<FileDigest> DigestFiles(absl::Span<const std::string> paths);

// Writes beside `path`, flushes to the disk, and renames: an old file stays whole until the new one is.
absl::Status WriteFileAtomic(const std::string& path, absl::string_view contents);

// The same where there may be no memory: allocates nothing, and returns an errno, or 0. `temporary` is the path with
// ".XXXXXX" behind it, which is overwritten.
int ReplaceFile(const char* path, char* temporary, absl::string_view contents);

// Makes the folder and its parents, and proves by a temporary file that it can be written.
absl::Status MakeWritableFolder(const std::string& path);

// Where programs keep what they can make again: $XDG_CACHE_HOME/fuselage, or ~/.cache/fuselage (XDG Base Directory
// Specification 0.8); empty where neither variable holds an absolute path.
std::string CacheFolder();

// Where installed packages keep data that programs share: `path` in the first of the folders of $XDG_DATA_DIRS, by
// default /usr/local/share:/usr/share (the same specification), that has it; in the last one where none does.
std::string SharedData(absl::string_view path);

bool FileExists(const std::string& path);

// The last part of a path without its extension: "a/resnet18.textproto" -> "resnet18".
std::string Stem(absl::string_view path);

// The folders that relative paths are looked for in.
struct SearchPath {
  std::string caller;     // BUILD_WORKING_DIRECTORY, where `bazel run` was typed; otherwise the working directory.
  std::string workspace;  // BUILD_WORKSPACE_DIRECTORY; may be empty.
  std::string runfiles;   // This program's, up to and including the workspace's name; may be empty.

  static SearchPath FromEnvironment();

  // Absolute paths as they are, others below the caller's directory.
  std::string InCaller(absl::string_view path) const;
  // An absolute path, or the first of caller, workspace, runfiles that has it; where none has, InCaller(path).
  std::string Find(absl::string_view path) const;
};

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_BASE_FILES_H_
