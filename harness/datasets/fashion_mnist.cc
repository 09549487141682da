#include "harness/datasets/fashion_mnist.h"

#include <errno.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "ir/base/status.h"

namespace fuselage::datasets {
namespace {

constexpr int kClasses = 10;
constexpr int64_t kMaxBytes = int64_t{1} << 30;

// A gzipped file as a stream that knows how far it is.
class GzipReader {
 public:
  explicit GzipReader(const std::string& path) : path_(path) {}
  ~GzipReader() {
    if (file_ != nullptr) gzclose(file_);
  }
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  absl::Status Open() {
    ASSIGN_OR_RETURN(const int descriptor, harness::OpenRegularFile(path_));
    file_ = gzdopen(descriptor, "rb");
    if (file_ == nullptr) {
      close(descriptor);
      return harness::ErrnoError(ENOMEM, "cannot open", path_);
    }
    gzbuffer(file_, 1 << 17);
    // zlib hands plain files through; here they are a mistake.
    if (gzdirect(file_)) return Invalid("not a gzip file");
    return absl::OkStatus();
  }

  absl::Status Read(uint8_t* to, int64_t bytes) {
    while (bytes > 0) {
      const int count = gzread(file_, to, static_cast<unsigned>(std::min<int64_t>(bytes, 1 << 24)));
      if (count < 0) return GzipError();
      if (count == 0) return Invalid(absl::StrCat("ends at byte ", offset_, ", ", bytes, " bytes short"));
      to += count;
      bytes -= count;
      offset_ += count;
    }
    return absl::OkStatus();
  }

  // Reads past the last element, which also makes zlib check the stream's CRC.
  absl::Status ExpectEnd() {
    uint8_t extra;
    const int count = gzread(file_, &extra, 1);
    int code = Z_OK;
    gzerror(file_, &code);  // Z_BUF_ERROR: the stream breaks off in its trailer.
    if (count < 0 || code == Z_BUF_ERROR) return GzipError();
    if (count > 0) return Invalid(absl::StrCat("has more data after its last element, at byte ", offset_));
    return absl::OkStatus();
  }

  absl::Status Invalid(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(path_, ": ", what));
  }

 private:
  absl::Status GzipError() const {
    int code = 0;
    const char* text = gzerror(file_, &code);
    if (code == Z_ERRNO) return harness::ErrnoError(errno, "cannot read", path_);
    return Invalid(absl::StrCat("broken gzip data near byte ", offset_, " of the unpacked file (",
                                text == nullptr ? "" : text, ")"));
  }

  std::string path_;
  gzFile file_ = nullptr;
  int64_t offset_ = 0;
};

class FashionMnist : public ImageDataset {
 public:
  FashionMnist(Idx images, Idx labels) : images_(std::move(images)), labels_(std::move(labels)) {}

  int64_t size() const override { return images_.dims[0]; }
  int num_classes() const override { return kClasses; }
  int label(int64_t i) const override { return labels_.data[i]; }
  absl::StatusOr<Image> image(int64_t i) const override {
    Image image{static_cast<int>(images_.dims[1]), static_cast<int>(images_.dims[2]), 1, {}};
    const int64_t bytes = int64_t{image.height} * image.width;
    image.pixels.assign(images_.data.begin() + i * bytes, images_.data.begin() + (i + 1) * bytes);
    return image;
  }

 private:
  Idx images_, labels_;
};

}  // namespace

absl::StatusOr<Idx> ReadIdx(const std::string& path, int rank) {
  GzipReader reader(path);
  RETURN_IF_ERROR(reader.Open());
  uint8_t magic[4];
  RETURN_IF_ERROR(reader.Read(magic, 4));
  if (magic[0] != 0 || magic[1] != 0 || magic[2] != 8 || magic[3] != rank) {
    return reader.Invalid(absl::StrCat("magic number ", absl::Hex(magic[0], absl::kZeroPad2),
                                       absl::Hex(magic[1], absl::kZeroPad2), absl::Hex(magic[2], absl::kZeroPad2),
                                       absl::Hex(magic[3], absl::kZeroPad2), " at byte 0, want 0000080", rank,
                                       " (IDX of u8 with ", rank, " dimensions)"));
  }
  Idx idx;
  int64_t elements = 1;
  for (int axis = 0; axis < rank; ++axis) {
    uint8_t b[4];
    RETURN_IF_ERROR(reader.Read(b, 4));
    const int64_t dim = int64_t{b[0]} << 24 | int64_t{b[1]} << 16 | int64_t{b[2]} << 8 | int64_t{b[3]};
    if (dim == 0 || dim > kMaxBytes / elements) {
      return reader.Invalid(
          absl::StrCat("dimension ", axis, " is ", dim, ", want between 1 and ", kMaxBytes / elements));
    }
    elements *= dim;
    idx.dims.push_back(dim);
  }
  // In pieces: a short file that claims a gigabyte must not get it.
  constexpr int64_t kPiece = int64_t{16} << 20;
  while (static_cast<int64_t>(idx.data.size()) < elements) {
    const int64_t done = static_cast<int64_t>(idx.data.size());
    const int64_t piece = std::min(kPiece, elements - done);
    idx.data.resize(done + piece);
    RETURN_IF_ERROR(reader.Read(idx.data.data() + done, piece));
  }
  RETURN_IF_ERROR(reader.ExpectEnd());
  return idx;
}

std::string FashionMnistFolder() { return harness::SharedData("datasets/fashion-mnist"); }

absl::StatusOr<std::unique_ptr<ImageDataset>> OpenFashionMnist(const std::string& folder, bool train) {
  const std::string prefix = absl::StrCat(folder, "/", train ? "train" : "t10k");
  const std::string images_path = prefix + "-images-idx3-ubyte.gz";
  const std::string labels_path = prefix + "-labels-idx1-ubyte.gz";
  for (const std::string& path : {images_path, labels_path}) {
    if (!harness::FileExists(path)) {
      return absl::NotFoundError(absl::StrCat("Fashion-MNIST is not in ", folder, " (no ", path,
                                              "): install the Debian package dataset-fashion-mnist, or set "
                                              "dataset.fashion_mnist.path"));
    }
  }
  ASSIGN_OR_RETURN(Idx images, ReadIdx(images_path, 3));
  ASSIGN_OR_RETURN(Idx labels, ReadIdx(labels_path, 1));
  if (images.dims[0] != labels.dims[0]) {
    return absl::InvalidArgumentError(absl::StrCat(images_path, " has ", images.dims[0], " images, but ", labels_path,
                                                   " has ", labels.dims[0], " labels"));
  }
  for (size_t i = 0; i < labels.data.size(); ++i) {
    if (labels.data[i] >= kClasses) {
      return absl::InvalidArgumentError(
          absl::StrCat(labels_path, ": label ", i, " is ", int{labels.data[i]}, ", want less than ", kClasses));
    }
  }
  return std::make_unique<FashionMnist>(std::move(images), std::move(labels));
}

}  // namespace fuselage::datasets
