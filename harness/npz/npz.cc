#include "harness/npz/npz.h"

#include <zip.h>

#include <algorithm>
#include <memory>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "harness/base/files.h"
#include "ir/base/hash_map.h"
#include "ir/base/status.h"

namespace fuselage::npz {
namespace {

constexpr absl::string_view kExtension = ".npy";
constexpr int64_t kMostHeader = 1 << 16;
// Deflate makes at most 1032 bytes of one (zlib's technical details).
constexpr int64_t kMostExpansion = 1032;

struct Discard {
  void operator()(zip_t* archive) const { zip_discard(archive); }
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};
using Archive = std::unique_ptr<zip_t, Discard>;
using File = std::unique_ptr<zip_file_t, Discard>;

// libzip's error as text; it owns memory.
class Failure {
 public:
  Failure() { zip_error_init(&error_); }
  ~Failure() { zip_error_fini(&error_); }
  zip_error_t* get() { return &error_; }
  absl::Status Status(absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(what, zip_error_strerror(&error_)));
  }

 private:
  zip_error_t error_;
};

absl::Status Truncated(int64_t found, int64_t wanted) {
  return absl::InvalidArgumentError(absl::StrCat("found the end after ", found, " bytes, wanted ", wanted));
}

// Exactly `size` bytes, or as many as there are.
absl::StatusOr<int64_t> ReadBytes(zip_file_t* file, void* out, int64_t size) {
  const zip_int64_t count = zip_fread(file, out, static_cast<zip_uint64_t>(size));
  if (count >= 0) return count;
  return absl::InvalidArgumentError(zip_file_strerror(file));  // A checksum that does not fit, for example.
}

// `size` bytes are in the archive, at most `*budget` of which may be data; what is taken leaves it.
absl::StatusOr<Tensor> ReadArray(zip_file_t* file, int64_t size, int64_t* budget) {
  std::string head(std::min(size, kMostHeader), '\0');
  ASSIGN_OR_RETURN(const int64_t got, ReadBytes(file, &head[0], head.size()));
  head.resize(got);
  ASSIGN_OR_RETURN(const Header header, ParseHeader(head));
  const int64_t bytes = header.type.byte_size();
  if (bytes != size - header.size) {
    return absl::InvalidArgumentError(
        absl::StrCat("found ", size - header.size, " bytes of data, wanted ", bytes, " for ", ToString(header.type)));
  }
  if (bytes > *budget) {
    return absl::ResourceExhaustedError(
        absl::StrCat(ToString(header.type), " needs ", bytes, " bytes, wanted at most ", *budget));
  }
  *budget -= bytes;
  Tensor tensor(header.type);
  uint8_t* data = static_cast<uint8_t*>(tensor.raw_data());
  const int64_t in_head = std::min<int64_t>(got - header.size, bytes);
  std::copy_n(head.data() + header.size, in_head, data);
  ASSIGN_OR_RETURN(const int64_t rest, ReadBytes(file, data + in_head, bytes - in_head));
  if (in_head + rest != bytes) return Truncated(header.size + in_head + rest, size);
  char end;
  ASSIGN_OR_RETURN(const int64_t more, ReadBytes(file, &end, 1));  // The checksum is compared at the end.
  if (more != 0) return absl::InvalidArgumentError(absl::StrCat("found more than ", size, " bytes"));
  return tensor;
}

absl::StatusOr<Array> ReadEntry(zip_t* archive, int64_t index, int64_t file_bytes, int64_t* budget) {
  zip_stat_t entry;
  if (zip_stat_index(archive, index, 0, &entry) != 0) return absl::InvalidArgumentError(zip_strerror(archive));
  constexpr zip_uint64_t kWanted = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE;
  if ((entry.valid & kWanted) != kWanted) {
    return absl::InvalidArgumentError(absl::StrCat("entry ", index, ": found no name or size, wanted both"));
  }
  const absl::string_view name = entry.name;
  const std::string place = absl::StrCat("array \"", absl::StripSuffix(name, kExtension), "\"");
  if (!absl::EndsWith(name, kExtension)) {
    return absl::InvalidArgumentError(absl::StrCat("found the file \"", name, "\", wanted names that end in .npy"));
  }
  if (entry.comp_size > static_cast<zip_uint64_t>(file_bytes) || entry.size / kMostExpansion > entry.comp_size + 1) {
    return absl::InvalidArgumentError(absl::StrCat(place, ": found ", entry.size, " bytes in ", entry.comp_size, " of ",
                                                   file_bytes, ", wanted sizes that fit"));
  }
  const File file(zip_fopen_index(archive, index, 0));
  if (file == nullptr) return absl::InvalidArgumentError(absl::StrCat(place, ": ", zip_strerror(archive)));
  absl::StatusOr<Tensor> tensor = ReadArray(file.get(), static_cast<int64_t>(entry.size), budget);
  if (!tensor.ok()) return Annotate(tensor.status(), place);
  return Array{std::string(absl::StripSuffix(name, kExtension)), *std::move(tensor)};
}

absl::StatusOr<std::vector<Array>> ReadArchive(const std::string& bytes, int64_t max_bytes) {
  // libzip takes an empty file for an empty archive.
  if (bytes.empty()) return absl::InvalidArgumentError("found an empty file, wanted a .npz archive");
  Failure failure;
  zip_source_t* source = zip_source_buffer_create(bytes.data(), bytes.size(), /*freep=*/0, failure.get());
  if (source == nullptr) return failure.Status("");
  const Archive archive(zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, failure.get()));
  if (archive == nullptr) {
    zip_source_free(source);
    return failure.Status("not a good .npz file: ");
  }
  std::vector<Array> arrays;
  HashSet<std::string> names;
  for (int64_t i = 0; i < zip_get_num_entries(archive.get(), 0); ++i) {
    ASSIGN_OR_RETURN(Array array, ReadEntry(archive.get(), i, static_cast<int64_t>(bytes.size()), &max_bytes));
    if (!names.insert(array.name).second) {
      return absl::InvalidArgumentError(absl::StrCat("found two arrays \"", array.name, "\", wanted one"));
    }
    arrays.push_back(std::move(array));
  }
  return arrays;
}

// The archive reads header and data from where they lie when it is closed: both outlive it.
absl::Status Add(zip_t* archive, const Array& array, std::string* header) {
  *header = HeaderOf(array.tensor.type());
  zip_buffer_fragment_t parts[] = {{reinterpret_cast<zip_uint8_t*>(&(*header)[0]), header->size()},
                                   {static_cast<zip_uint8_t*>(const_cast<void*>(array.tensor.raw_data())),
                                    static_cast<zip_uint64_t>(array.tensor.byte_size())}};
  zip_source_t* source = zip_source_buffer_fragment(archive, parts, array.tensor.byte_size() > 0 ? 2 : 1, /*freep=*/0);
  if (source == nullptr) return absl::UnavailableError(zip_strerror(archive));
  const zip_int64_t index =
      zip_file_add(archive, absl::StrCat(array.name, kExtension).c_str(), source, ZIP_FL_ENC_UTF_8);
  if (index < 0) {
    zip_source_free(source);
    return absl::UnavailableError(zip_strerror(archive));
  }
  constexpr zip_uint16_t kFirstOf1980 = 1 << 5 | 1;  // DOS counts from 1980; the same bytes whenever they are written.
  if (zip_set_file_compression(archive, index, ZIP_CM_STORE, 0) != 0 ||
      zip_file_set_dostime(archive, index, 0, kFirstOf1980, 0) != 0) {
    return absl::UnavailableError(zip_strerror(archive));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<Array>> Read(const std::string& path, int64_t max_bytes) {
  ASSIGN_OR_RETURN(const std::string bytes, harness::ReadFile(path));
  absl::StatusOr<std::vector<Array>> arrays = ReadArchive(bytes, max_bytes);
  if (!arrays.ok()) return Annotate(arrays.status(), path);
  return arrays;
}

absl::Status Write(const std::string& path, const std::vector<Array>& arrays) {
  const auto error = [&](absl::string_view what) {
    return absl::UnavailableError(absl::StrCat("cannot write ", path, ": ", what));
  };
  int code = 0;
  Archive archive(zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code));
  if (archive == nullptr) {
    Failure failure;
    zip_error_init_with_code(failure.get(), code);
    return error(failure.Status("").message());
  }
  std::vector<std::string> headers(arrays.size());
  for (size_t i = 0; i < arrays.size(); ++i) {
    const absl::Status added = Add(archive.get(), arrays[i], &headers[i]);
    if (!added.ok()) return error(absl::StrCat("array \"", absl::CHexEscape(arrays[i].name), "\": ", added.message()));
  }
  // Beside `path`, then renamed: an old file stays whole until the new one is.
  if (zip_close(archive.get()) != 0) return error(zip_strerror(archive.get()));
  static_cast<void>(archive.release());
  return absl::OkStatus();
}

}  // namespace fuselage::npz
