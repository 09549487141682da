// Placement: where the codes (one byte each) of a tensor of rank 4 lie in memory.
//
// A convolution reads its input in place, without a copy for its padding, where there is room around every image that
// holds the zero point. Which tensor gets which placement is decided once, when the graph is compiled
// (runtime/placements.h); whoever writes a tensor also fills its halo.
#ifndef FUSELAGE_KERNELS_CORE_PLACEMENT_PLACEMENT_H_
#define FUSELAGE_KERNELS_CORE_PLACEMENT_PLACEMENT_H_

#include <cstdint>
#include <string>

#include "ir/base/tensor.h"

namespace fuselage::kernels {

enum class Blocking : uint8_t {
  kNone,          // One plane of pixels [y][x], each of c channels.
  kPhasePlanes,   // Four planes [y % 2][x % 2] of pixels [y / 2][x / 2]: stride 2 becomes stride 1 in each.
  kSpaceToDepth,  // One plane of blocks [y / 2][x / 2], each of [y % 2][x % 2] pixels: few channels become four times
                  // as many, and stride 2 becomes stride 1.
};

// The default is dense NHWC.
struct Placement {
  Blocking blocking = Blocking::kNone;
  // Pixels (or blocks) above, below, left and right of each plane. A row's right halo is the next row's left one.
  int halo = 0;
  // From one pixel (or block) to the next; 0: as many as it has codes. What lies between is undefined, but where
  // even() it may be another tensor's (the channels beside these in a concatenation): a kernel leaves it as it is.
  int pixel_bytes = 0;

  bool dense() const { return *this == Placement(); }
  // Is every pixel as far from the one before it, across rows and images too?
  bool even() const { return blocking == Blocking::kNone && halo == 0; }

  friend bool operator==(const Placement& a, const Placement& b) {
    return a.blocking == b.blocking && a.halo == b.halo && a.pixel_bytes == b.pixel_bytes;
  }
  friend bool operator!=(const Placement& a, const Placement& b) { return !(a == b); }
};

// "dense", "halo 1", "halo 1, 576 bytes a pixel", "phase planes, halo 1", "space to depth, halo 2, 16 bytes a pixel"
std::string PlacementText(const Placement& placement);

// The addresses of a placed tensor, as byte offsets from its first byte.
struct PlacedTensor {
  // `shape`: [n, c, h, w]. pixel_bytes of the placement is 0 or at least what a pixel (or block) has.
  PlacedTensor(const Shape& shape, const Placement& placement);

  // The first channel of pixel (y, x) of image n, inside the image.
  int64_t Offset(int64_t n, int64_t y, int64_t x) const {
    switch (placement.blocking) {
      case Blocking::kNone: return n * image_bytes + first + y * row_bytes + x * pixel_bytes;
      case Blocking::kPhasePlanes:
        return n * image_bytes + ((y & 1) * 2 + (x & 1)) * plane_bytes + first + (y >> 1) * row_bytes +
               (x >> 1) * pixel_bytes;
      case Blocking::kSpaceToDepth:
        return n * image_bytes + first + (y >> 1) * row_bytes + (x >> 1) * pixel_bytes +
               ((y & 1) * 2 + (x & 1)) * channels;
    }
    return 0;
  }

  // Stores `code` wherever zero padding is read around rows [begin, end) of image n: beside them, above the first row
  // of the image, below its last. In blocks a row that does not exist (odd heights) belongs to the row above it.
  // Threads that write disjoint rows may call it for theirs; with space to depth `begin` is even.
  void FillHalo(void* tensor, uint8_t code, int64_t n, int64_t begin, int64_t end) const;

  Placement placement;
  int64_t batch, channels, height, width;
  int64_t plane_height, plane_width;  // Pixels (blocks), without the halo.
  int64_t pixel_bytes;                // From pixel (block) to pixel,
  int64_t row_bytes;                  // from row to row,
  int64_t plane_bytes;                // from plane to plane,
  int64_t image_bytes;                // from image to image.
  int64_t first;                      // Where pixel (block) (0, 0) is in its plane.
  // The bytes of all images, where even() up to the last code. Where not dense, kSlackPixels pixels more may be read
  // (their values are undefined), so that a kernel may load pixels in groups of that many.
  int64_t bytes;

  static constexpr int kSlackPixels = 16;
};

}  // namespace fuselage::kernels

#endif  // FUSELAGE_KERNELS_CORE_PLACEMENT_PLACEMENT_H_
