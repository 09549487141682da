// Files: the model's own, and those that hold its external data.
#ifndef FUSELAGE_FRONTEND_ONNX_FILES_H_
#define FUSELAGE_FRONTEND_ONNX_FILES_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "ir/base/budget.h"

namespace onnx {
class TensorProto;
}  // namespace onnx

namespace fuselage::onnx {

// A range of an open regular file.
class FileRange {
 public:
  FileRange() = default;
  FileRange(FileRange&& other) noexcept { *this = std::move(other); }
  FileRange& operator=(FileRange&& other) noexcept;
  ~FileRange();

  // `bytes` is what the tensor's type and shape need. See ToTensor for the rules of the location.
  static absl::StatusOr<FileRange> Open(const ::onnx::TensorProto& proto, const std::string& folder, int64_t bytes);
  // All of `path`, which must be a regular file.
  static absl::StatusOr<FileRange> OpenWhole(const std::string& path);

  int64_t size() const { return size_; }
  // Fills size() bytes. Unavailable where the file has become shorter, or reading fails.
  absl::Status Read(char* out) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  int64_t offset_ = 0;
  int64_t size_ = 0;
};

// All of a regular file, charged to the budget. NotFound, PermissionDenied, Unavailable, InvalidArgument.
absl::StatusOr<std::string> ReadFile(const std::string& path, Budget* budget);

}  // namespace fuselage::onnx

#endif  // FUSELAGE_FRONTEND_ONNX_FILES_H_
