// MappedFile: a regular file, mapped for reading. Its pages are the page cache's, which all processes share.
#ifndef FUSELAGE_IR_BASE_MAPPED_FILE_H_
#define FUSELAGE_IR_BASE_MAPPED_FILE_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fuselage {

// Whoever writes into the file, or cuts it, changes what is mapped: a file is replaced by renaming another one over it.
class MappedFile {
 public:
  // Errors begin with the path. NotFound, PermissionDenied: what errno says; InvalidArgument: no regular file.
  static absl::StatusOr<std::shared_ptr<const MappedFile>> Open(const std::string& path);

  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  // From a page's boundary on.
  absl::string_view bytes() const { return absl::string_view(static_cast<const char*>(data_), size_); }

 private:
  MappedFile() = default;

  void* data_ = nullptr;  // Null where the file is empty.
  size_t size_ = 0;
};

}  // namespace fuselage

#endif  // FUSELAGE_IR_BASE_MAPPED_FILE_H_
