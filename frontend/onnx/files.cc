#include "frontend/onnx/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "frontend/onnx/tensors.h"
#include "ir/base/status.h"
#include "onnx/onnx.pb.h"

namespace fuselage::onnx {
namespace {

absl::Status SystemError(absl::string_view what, int error) {
  const std::string message = absl::StrCat(what, ": ", strerror(error));
  switch (error) {
    case ENOENT:
    case ENOTDIR: return absl::NotFoundError(message);
    case EACCES:
    case EPERM: return absl::PermissionDeniedError(message);
    case ELOOP:
    case ENAMETOOLONG: return absl::InvalidArgumentError(message);
    default: return absl::UnavailableError(message);
  }
}

// Symbolic links resolved.
absl::StatusOr<std::string> RealPath(const std::string& path) {
  char* resolved = realpath(path.c_str(), nullptr);
  if (resolved == nullptr) return SystemError(Quote(path), errno);
  std::string result = resolved;
  free(resolved);
  return result;
}

absl::Status CheckLocation(absl::string_view location) {
  if (location.empty()) return absl::InvalidArgumentError("found no external data location, wanted a file");
  if (location[0] == '/' || absl::StrContains(location, '\\') || absl::StrContains(location, '\0')) {
    return absl::InvalidArgumentError(
        absl::StrCat("found external data in ", Quote(location), ", wanted a path relative to the model's folder"));
  }
  for (absl::string_view part : absl::StrSplit(location, '/')) {
    if (part == "..") {
      return absl::InvalidArgumentError(
          absl::StrCat("found external data in ", Quote(location), ", wanted a path without '..'"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MemoryBytes::Read(int64_t offset, int64_t count, void* out) const {
  if (count > 0) memcpy(out, bytes_.data() + offset, count);
  return absl::OkStatus();
}

FileRange& FileRange::operator=(FileRange&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(offset_, other.offset_);
  std::swap(size_, other.size_);
  return *this;
}

FileRange::~FileRange() {
  if (descriptor_ >= 0) close(descriptor_);
}

absl::StatusOr<FileRange> FileRange::OpenWhole(const std::string& path) {
  FileRange file;
  file.path_ = path;
  // Non-blocking, so that a FIFO under this name cannot hang the open.
  file.descriptor_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file.descriptor_ < 0) return SystemError(Quote(path), errno);
  struct stat status;
  if (fstat(file.descriptor_, &status) != 0) return SystemError(Quote(path), errno);
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(Quote(path), " is not a regular file"));
  }
  file.size_ = status.st_size;
  return file;
}

absl::StatusOr<FileRange> FileRange::Open(const schema::TensorProto& proto, const std::string& folder, int64_t bytes) {
  if (folder.empty()) {
    return absl::InvalidArgumentError("found external data, wanted a model that holds all of its data");
  }
  std::string location;
  int64_t offset = 0, length = bytes;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") {
      location = entry.value();
    } else if (entry.key() == "offset" || entry.key() == "length") {
      int64_t value;
      if (!absl::SimpleAtoi(entry.value(), &value) || value < 0) {
        return absl::InvalidArgumentError(absl::StrCat("found ", Quote(entry.value()), " as the ", entry.key(),
                                                       " of external data, wanted a whole number >= 0"));
      }
      (entry.key() == "offset" ? offset : length) = value;
    }
  }
  RETURN_IF_ERROR(CheckLocation(location));
  if (length != bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("found ", length, " bytes of external data, wanted ", bytes, " for its type and shape"));
  }
  ASSIGN_OR_RETURN(const std::string root, RealPath(folder));
  ASSIGN_OR_RETURN(const std::string path, RealPath(absl::StrCat(root, "/", location)));
  if (!absl::StartsWith(path, root == "/" ? root : root + "/")) {
    return absl::InvalidArgumentError(
        absl::StrCat("found external data in ", Quote(location), ", which leads out of the model's folder"));
  }
  ASSIGN_OR_RETURN(FileRange file, OpenWhole(path));
  if (offset > file.size_ || length > file.size_ - offset) {
    return absl::InvalidArgumentError(absl::StrCat("found ", file.size_, " bytes in ", Quote(location), ", wanted ",
                                                   length, " from byte ", offset, " on"));
  }
  file.offset_ = offset;
  file.size_ = length;
  return file;
}

absl::Status FileRange::Read(int64_t offset, int64_t count, void* out) const {
  for (int64_t done = 0; done < count;) {
    const ssize_t read = pread(descriptor_, static_cast<char*>(out) + done, count - done, offset_ + offset + done);
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) return SystemError(Quote(path_), errno);
    if (read == 0) return absl::UnavailableError(absl::StrCat(Quote(path_), " became shorter while it was read"));
    done += read;
  }
  return absl::OkStatus();
}

}  // namespace fuselage::onnx
