#include "kernels/core/placement/placement.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/base/check.h"

namespace fuselage::kernels {
namespace {

constexpr int64_t kCacheLine = 64;

}  // namespace

std::string PlacementText(const Placement& placement) {
  std::vector<std::string> parts;
  if (placement.blocking == Blocking::kPhasePlanes) parts.push_back("phase planes");
  if (placement.blocking == Blocking::kSpaceToDepth) parts.push_back("space to depth");
  if (placement.halo > 0) parts.push_back(absl::StrCat("halo ", placement.halo));
  if (placement.pixel_bytes > 0) parts.push_back(absl::StrCat(placement.pixel_bytes, " bytes a pixel"));
  return parts.empty() ? "dense" : absl::StrJoin(parts, ", ");
}

PlacedTensor::PlacedTensor(const Shape& shape, const Placement& p)
    : placement(p), batch(shape[0]), channels(shape[1]), height(shape[2]), width(shape[3]) {
  const bool blocked = p.blocking != Blocking::kNone;
  const int64_t planes = p.blocking == Blocking::kPhasePlanes ? 4 : 1;
  const int64_t codes = p.blocking == Blocking::kSpaceToDepth ? 4 * channels : channels;
  FUSELAGE_CHECK(p.pixel_bytes == 0 || p.pixel_bytes >= codes);
  plane_height = blocked ? (height + 1) / 2 : height;
  plane_width = blocked ? (width + 1) / 2 : width;
  pixel_bytes = p.pixel_bytes > 0 ? p.pixel_bytes : codes;
  row_bytes = (plane_width + p.halo) * pixel_bytes;
  plane_bytes = (plane_height + 2 * p.halo) * row_bytes + p.halo * pixel_bytes;
  first = p.halo * (row_bytes + pixel_bytes);
  image_bytes = planes * plane_bytes;
  bytes = batch * image_bytes;
  if (p.even() && bytes > 0) bytes -= pixel_bytes - codes;
  if (!p.dense()) bytes += kSlackPixels * pixel_bytes + kCacheLine;
}

void PlacedTensor::FillHalo(void* tensor, uint8_t code, int64_t n, int64_t begin, int64_t end) const {
  if (placement.even()) return;
  uint8_t* image = static_cast<uint8_t*>(tensor) + n * image_bytes;
  const int step = placement.blocking == Blocking::kNone ? 1 : 2;
  const int planes = placement.blocking == Blocking::kPhasePlanes ? 4 : 1;
  for (int p = 0; p < planes; ++p) {
    uint8_t* plane = image + p * plane_bytes;
    const int64_t first_y = p / 2, first_x = p % 2;  // The first of the tensor's rows and columns in the plane.
    const int64_t rows = (height - first_y + step - 1) / step, columns = (width - first_x + step - 1) / step;
    const int64_t row_end = (end - first_y + step - 1) / step;
    const int64_t row_begin = std::max<int64_t>(0, (begin - first_y + step - 1) / step);
    if (begin == 0) std::memset(plane, code, placement.halo * row_bytes);
    for (int64_t row = row_begin; row < row_end; ++row) {
      uint8_t* pixels = plane + first + row * row_bytes;
      std::memset(pixels - placement.halo * pixel_bytes, code, placement.halo * pixel_bytes);
      std::memset(pixels + columns * pixel_bytes, code, (plane_width - columns) * pixel_bytes);
    }
    if (end == height) {
      uint8_t* below = plane + first + rows * row_bytes - placement.halo * pixel_bytes;
      std::memset(below, code, plane + plane_bytes - below);
    }
  }
  if (placement.blocking != Blocking::kSpaceToDepth) return;
  for (int64_t y = begin; width % 2 != 0 && y < end; ++y) {
    std::memset(image + Offset(0, y, width), code, channels);
  }
  for (int64_t x = 0; height % 2 != 0 && end == height && x < 2 * plane_width; ++x) {
    std::memset(image + Offset(0, height, x), code, channels);
  }
}

}  // namespace fuselage::kernels
