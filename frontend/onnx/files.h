// Where bytes come from: memory, the model's file, and those that hold its external data.
#ifndef FUSELAGE_FRONTEND_ONNX_FILES_H_
#define FUSELAGE_FRONTEND_ONNX_FILES_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fuselage::onnx::schema {
class TensorProto;
}  // namespace fuselage::onnx::schema

namespace fuselage::onnx {

// Bytes that are read piece by piece.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual int64_t size() const = 0;
  // Fills `out` with `count` bytes from `offset` on, which the caller knows to be there. Unavailable where they are
  // not, because a file has become shorter, or where reading fails.
  virtual absl::Status Read(int64_t offset, int64_t count, void* out) const = 0;
};

class MemoryBytes : public ByteSource {
 public:
  explicit MemoryBytes(absl::string_view bytes) : bytes_(bytes) {}
  int64_t size() const override { return static_cast<int64_t>(bytes_.size()); }
  absl::Status Read(int64_t offset, int64_t count, void* out) const override;

 private:
  absl::string_view bytes_;
};

// A range of an open regular file.
class FileRange : public ByteSource {
 public:
  FileRange() = default;
  FileRange(FileRange&& other) noexcept { *this = std::move(other); }
  FileRange& operator=(FileRange&& other) noexcept;
  ~FileRange() override;

  // `bytes` is what the tensor's type and shape need. See ToTensor for the rules of the location.
  static absl::StatusOr<FileRange> Open(const schema::TensorProto& proto, const std::string& folder, int64_t bytes);
  // All of `path`, which must be a regular file. NotFound, PermissionDenied, Unavailable, InvalidArgument.
  static absl::StatusOr<FileRange> OpenWhole(const std::string& path);

  int64_t size() const override { return size_; }
  absl::Status Read(int64_t offset, int64_t count, void* out) const override;

 private:
  std::string path_;
  int descriptor_ = -1;
  int64_t offset_ = 0;
  int64_t size_ = 0;
};

}  // namespace fuselage::onnx

#endif  // FUSELAGE_FRONTEND_ONNX_FILES_H_
