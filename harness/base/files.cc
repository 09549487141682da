#include "harness/base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ir/base/sha256.h"
#include "ir/base/status.h"

namespace fuselage::harness {
namespace {

// Closes what it holds, unless released.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int Release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }

 private:
  int fd_;
};

absl::Status NoRegularFile(absl::string_view what, absl::string_view path, const struct stat& info) {
  const mode_t mode = info.st_mode;
  const char* kind = S_ISDIR(mode) ? "directory" : S_ISFIFO(mode) ? "FIFO" : S_ISSOCK(mode) ? "socket" : "device";
  return absl::UnavailableError(absl::StrCat(what, " ", path, ": it is a ", kind, ", wanted a regular file"));
}

// Calls take(piece) for the file's bytes, in order.
template <typename Take>
absl::Status ReadPieces(const std::string& path, Take take) {
  ASSIGN_OR_RETURN(const int descriptor, OpenRegularFile(path));
  const Descriptor file(descriptor);
  std::string buffer(1 << 20, '\0');
  while (true) {
    const ssize_t count = read(file.get(), &buffer[0], buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ErrnoError(errno, "cannot read", path);
    if (count == 0) return absl::OkStatus();
    take(absl::string_view(buffer.data(), count));
  }
}

// errno; 0 where all was written.
int WriteAll(int fd, absl::string_view contents) {
  while (!contents.empty()) {
    const ssize_t count = write(fd, contents.data(), contents.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    contents.remove_prefix(count);
  }
  return 0;
}

std::string Join(absl::string_view folder, absl::string_view path) {
  if (absl::StartsWith(path, "/") || folder.empty()) return std::string(path);
  return absl::StrCat(folder, absl::EndsWith(folder, "/") ? "" : "/", path);
}

// The program's runfiles lie beside it: <program>.runfiles/fuselage.
std::string RunfilesFolder() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  for (const std::string& base : {std::string(error ? "" : program.string() + ".runfiles"),
                                  std::string(getenv("RUNFILES_DIR") ? getenv("RUNFILES_DIR") : ""),
                                  std::string(getenv("TEST_SRCDIR") ? getenv("TEST_SRCDIR") : "")}) {
    if (!base.empty() && FileExists(base + "/fuselage")) return base + "/fuselage";
  }
  return "";
}

}  // namespace

absl::Status ErrnoError(int error, absl::string_view what, absl::string_view path) {
  const std::string message = absl::StrCat(what, " ", path, ": ", strerror(error));
  switch (error) {
    case ENOENT:
    case ENOTDIR: return absl::NotFoundError(message);
    case EACCES:
    case EPERM:
    case EROFS: return absl::PermissionDeniedError(message);
    case ENOMEM: return absl::ResourceExhaustedError(message);
    default: return absl::UnavailableError(message);
  }
}

absl::StatusOr<int> OpenRegularFile(const std::string& path) {
  // Non-blocking, so that a FIFO without a writer cannot hang the open.
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return ErrnoError(errno, "cannot open", path);
  struct stat info;
  if (fstat(file.get(), &info) != 0) return ErrnoError(errno, "cannot read", path);
  if (S_ISREG(info.st_mode)) return file.Release();
  return NoRegularFile("cannot read", path, info);
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::string contents;
  RETURN_IF_ERROR(ReadPieces(path, [&](absl::string_view piece) { absl::StrAppend(&contents, piece); }));
  return contents;
}

absl::StatusOr<FileDigest> DigestFiles(absl::Span<const std::string> paths) {
  Sha256 sha;
  FileDigest digest;
  for (const std::string& path : paths) {
    RETURN_IF_ERROR(ReadPieces(path, [&](absl::string_view piece) {
      sha.Update(piece);
      digest.bytes += static_cast<int64_t>(piece.size());
    }));
  }
  digest.sha256 = sha.Finish();
  return digest;
}

int ReplaceFile(const char* path, char* temporary, absl::string_view contents) {
  Descriptor file(mkostemp(temporary, O_CLOEXEC));
  if (file.get() < 0) return errno;
  int error = WriteAll(file.get(), contents);
  if (error == 0 && (fchmod(file.get(), 0644) != 0 || fsync(file.get()) != 0)) error = errno;
  if (close(file.Release()) != 0 && error == 0) error = errno;
  if (error == 0 && rename(temporary, path) != 0) error = errno;
  if (error != 0) unlink(temporary);
  return error;
}

absl::Status WriteFileAtomic(const std::string& path, absl::string_view contents) {
  // A rename would put a file in a device's place.
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) return NoRegularFile("cannot write", path, info);
  std::string temporary = path + ".XXXXXX";
  const int error = ReplaceFile(path.c_str(), &temporary[0], contents);
  return error == 0 ? absl::OkStatus() : ErrnoError(error, "cannot write", path);
}

absl::Status MakeWritableFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return ErrnoError(error.value(), "cannot make the folder", path);
  std::string probe = path + "/.probe.XXXXXX";
  Descriptor file(mkostemp(&probe[0], O_CLOEXEC));
  if (file.get() < 0) return ErrnoError(errno, "cannot write into the folder", path);
  unlink(probe.c_str());
  return absl::OkStatus();
}

std::string CacheFolder() {
  const char* cache = getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return absl::StrCat(cache, "/fuselage");
  const char* home = getenv("HOME");
  return home != nullptr && home[0] == '/' ? absl::StrCat(home, "/.cache/fuselage") : "";
}

std::string SharedData(absl::string_view path) {
  const char* folders = getenv("XDG_DATA_DIRS");
  if (folders == nullptr || folders[0] == '\0') folders = "/usr/local/share:/usr/share";
  std::string found;
  for (const absl::string_view folder : absl::StrSplit(folders, ':')) {
    found = absl::StrCat(folder, "/", path);
    if (FileExists(found)) break;
  }
  return found;
}

bool FileExists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

std::string Stem(absl::string_view path) { return std::filesystem::path(std::string(path)).stem().string(); }

SearchPath SearchPath::FromEnvironment() {
  SearchPath search;
  const char* caller = getenv("BUILD_WORKING_DIRECTORY");
  const char* workspace = getenv("BUILD_WORKSPACE_DIRECTORY");
  std::error_code error;
  search.caller = caller != nullptr ? caller : std::filesystem::current_path(error).string();
  search.workspace = workspace != nullptr ? workspace : "";
  search.runfiles = RunfilesFolder();
  return search;
}

std::string SearchPath::InCaller(absl::string_view path) const { return Join(caller, path); }

std::string SearchPath::Find(absl::string_view path) const {
  for (const std::string& folder : {caller, workspace, runfiles}) {
    if (folder.empty()) continue;
    const std::string candidate = Join(folder, path);
    if (FileExists(candidate)) return candidate;
  }
  return InCaller(path);
}

}  // namespace fuselage::harness
