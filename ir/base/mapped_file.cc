#include "ir/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"

namespace fuselage {

absl::StatusOr<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::string& path) {
  const auto error = [&](const char* what) { return absl::ErrnoToStatus(errno, absl::StrCat(path, ": ", what)); };
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return error("cannot be opened");
  const std::unique_ptr<const int, void (*)(const int*)> closed(&descriptor, [](const int* open) { close(*open); });
  struct stat status;
  if (fstat(descriptor, &status) != 0) return error("cannot be read");
  if (!S_ISREG(status.st_mode)) return absl::InvalidArgumentError(absl::StrCat(path, ": found no regular file"));
  std::shared_ptr<MappedFile> file(new MappedFile());
  if (status.st_size == 0) return file;  // Nothing to map.
  void* data = mmap(nullptr, status.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (data == MAP_FAILED) return error("cannot be mapped");
  file->data_ = data;
  file->size_ = status.st_size;
  return file;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(data_, size_);
}

}  // namespace fuselage
