// JPEG through libjpeg-turbo, PNG through libpng. Both report errors by longjmp or a message, never by exit.
#include <setjmp.h>
#include <stdio.h>
// After <stdio.h>, which jpeglib.h needs and does not include.
#include <jpeglib.h>
#include <png.h>

#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "harness/datasets/image_folder.h"

namespace fuselage::datasets {
namespace {

constexpr int64_t kMaxPixels = int64_t{64} << 20;

absl::Status Invalid(absl::string_view path, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", what));
}

absl::Status CheckSize(absl::string_view path, int64_t width, int64_t height) {
  if (width > 0 && height > 0 && width <= kMaxPixels && height <= kMaxPixels && width * height <= kMaxPixels) {
    return absl::OkStatus();
  }
  return Invalid(path, absl::StrCat("is ", width, "x", height, " pixels, want at most ", kMaxPixels, " in all"));
}

struct JpegError {
  jpeg_error_mgr manager;
  jmp_buf jump;
  char message[JMSG_LENGTH_MAX] = "";
};

void OnJpegError(j_common_ptr info) {
  JpegError* error = reinterpret_cast<JpegError*>(info->err);
  error->manager.format_message(info, error->message);
  longjmp(error->jump, 1);
}

// Warnings are errors here: libjpeg fills what a truncated file lacks with gray.
void OnJpegMessage(j_common_ptr info, int level) {
  if (level < 0) OnJpegError(info);
}

// No C++ object lives in the frames that longjmp leaves. False: `error` has the message.
bool StartJpeg(jpeg_decompress_struct* info, JpegError* error, absl::string_view data) {
  if (setjmp(error->jump) != 0) return false;
  jpeg_create_decompress(info);
  jpeg_mem_src(info, reinterpret_cast<const unsigned char*>(data.data()), data.size());
  jpeg_read_header(info, TRUE);
  info->out_color_space = info->jpeg_color_space == JCS_GRAYSCALE ? JCS_GRAYSCALE : JCS_RGB;
  info->dct_method = JDCT_ISLOW;
  return true;
}

bool FinishJpeg(jpeg_decompress_struct* info, JpegError* error, uint8_t* pixels) {
  if (setjmp(error->jump) != 0) return false;
  jpeg_start_decompress(info);
  const size_t stride = size_t{info->output_width} * info->output_components;
  while (info->output_scanline < info->output_height) {
    JSAMPROW row = pixels + info->output_scanline * stride;
    jpeg_read_scanlines(info, &row, 1);
  }
  jpeg_finish_decompress(info);
  return true;
}

}  // namespace

absl::StatusOr<Image> DecodeImage(absl::string_view data, absl::string_view path) {
  // ITU-T T.81: SOI, then the first byte of a marker. PNG 1.2, 3.1.
  if (absl::StartsWith(data, "\xff\xd8\xff")) return DecodeJpeg(data, path);
  if (absl::StartsWith(data, "\x89PNG\r\n\x1a\n")) return DecodePng(data, path);
  return Invalid(path, "found the first bytes of no JPEG and no PNG file, wanted one of the two");
}

absl::StatusOr<Image> DecodeJpeg(absl::string_view data, absl::string_view path) {
  jpeg_decompress_struct info;
  std::memset(&info, 0, sizeof info);
  JpegError error;
  info.err = jpeg_std_error(&error.manager);
  error.manager.error_exit = OnJpegError;
  error.manager.emit_message = OnJpegMessage;
  struct Destroy {
    jpeg_decompress_struct* info;
    ~Destroy() { jpeg_destroy_decompress(info); }
  } destroy{&info};

  if (!StartJpeg(&info, &error, data)) return Invalid(path, absl::StrCat("not a good JPEG file: ", error.message));
  absl::Status size = CheckSize(path, info.image_width, info.image_height);
  if (!size.ok()) return size;
  Image image{static_cast<int>(info.image_height),
              static_cast<int>(info.image_width),
              info.out_color_space == JCS_GRAYSCALE ? 1 : 3,
              {}};
  image.pixels.resize(size_t{info.image_height} * info.image_width * image.channels);
  if (!FinishJpeg(&info, &error, image.pixels.data())) {
    return Invalid(path, absl::StrCat("not a good JPEG file: ", error.message));
  }
  return image;
}

absl::StatusOr<Image> DecodePng(absl::string_view data, absl::string_view path) {
  png_image png;
  std::memset(&png, 0, sizeof png);
  png.version = PNG_IMAGE_VERSION;
  struct Free {
    png_image* png;
    ~Free() { png_image_free(png); }
  } free{&png};

  if (!png_image_begin_read_from_memory(&png, data.data(), data.size())) {
    return Invalid(path, absl::StrCat("not a good PNG file: ", png.message));
  }
  absl::Status size = CheckSize(path, png.width, png.height);
  if (!size.ok()) return size;
  const bool gray = (png.format & PNG_FORMAT_FLAG_COLOR) == 0;
  png.format = gray ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  png.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
  Image image{static_cast<int>(png.height), static_cast<int>(png.width), gray ? 1 : 3, {}};
  image.pixels.resize(PNG_IMAGE_SIZE(png));
  const png_color black = {0, 0, 0};
  if (!png_image_finish_read(&png, &black, image.pixels.data(), 0, nullptr)) {
    return Invalid(path, absl::StrCat("not a good PNG file: ", png.message));
  }
  return image;
}

}  // namespace fuselage::datasets
