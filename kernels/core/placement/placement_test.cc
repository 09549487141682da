#include "kernels/core/placement/placement.h"

#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace fuselage::kernels {
namespace {

constexpr Blocking kBlockings[] = {Blocking::kNone, Blocking::kPhasePlanes, Blocking::kSpaceToDepth};

TEST(PlacementTest, DenseIsNhwc) {
  const PlacedTensor placed({2, 3, 4, 5}, Placement());
  EXPECT_EQ(placed.bytes, 2 * 3 * 4 * 5);
  EXPECT_EQ(placed.Offset(1, 2, 3), ((1 * 4 + 2) * 5 + 3) * 3);
}

// So that the slices of a tensor have room in it: all but the codes of the last pixel is the same for all.
TEST(PlacementTest, EvenOnesEndWithTheirLastCode) {
  const auto bytes = [](int64_t channels) { return PlacedTensor({2, channels, 3, 5}, {Blocking::kNone, 0, 64}).bytes; };
  EXPECT_EQ(bytes(64) - bytes(40), 24);
  EXPECT_EQ(bytes(64), 2 * 3 * 5 * 64 + PlacedTensor::kSlackPixels * 64 + 64);
  EXPECT_EQ(PlacedTensor({2, 0, 0, 5}, {Blocking::kNone, 0, 64}).bytes, PlacedTensor::kSlackPixels * 64 + 64);
}

TEST(PlacementTest, ARowsRightHaloIsTheNextRowsLeftOne) {
  const PlacedTensor placed({1, 64, 56, 56}, {Blocking::kNone, 1, 0});
  EXPECT_EQ(placed.row_bytes, 57 * 64);
  EXPECT_EQ(placed.Offset(0, 0, 0), (57 + 1) * 64);
  EXPECT_EQ(placed.image_bytes, (58 * 57 + 1) * 64);
}

TEST(PlacementTest, SpaceToDepthPutsAStemsRowsIntoOneCacheLine) {
  const PlacedTensor placed({1, 3, 224, 224}, {Blocking::kSpaceToDepth, 2, 16});
  EXPECT_EQ(placed.Offset(0, 0, 2) - placed.Offset(0, 0, 0), 16);
  EXPECT_EQ(placed.Offset(0, 0, 1) - placed.Offset(0, 0, 0), 3);
  EXPECT_EQ(placed.Offset(0, 1, 0) - placed.Offset(0, 0, 0), 6);
  EXPECT_EQ(placed.row_bytes, 114 * 16);
}

// Writes every pixel and, by FillHalo on ranges of rows, the halo. Then every pixel is where Offset says, apart from
// all others, and reading around the image, as a convolution would, finds the code of the padding.
TEST(PlacementTest, PixelsAndHaloAreApart) {
  constexpr uint8_t kUntouched = 0xee, kPadding = 0x11;
  for (const Blocking blocking : kBlockings) {
    for (const int halo : {0, 1, 2}) {
      for (const int height : {1, 2, 5, 8}) {
        for (const int width : {1, 3, 6}) {
          for (const int spare : {0, 3}) {
            for (const int rows_at_once : {2, 8}) {
              const int channels = 3;
              const int codes = blocking == Blocking::kSpaceToDepth ? 4 * channels : channels;
              const Placement placement = {blocking, halo, spare == 0 ? 0 : codes + spare};
              const PlacedTensor placed({2, channels, height, width}, placement);
              SCOPED_TRACE(PlacementText(placement) + ToString(Shape{height, width}));
              std::vector<uint8_t> memory(placed.bytes, kUntouched);
              std::set<int64_t> used;
              for (int n = 0; n < 2; ++n) {
                for (int begin = 0; begin < height; begin += rows_at_once) {
                  placed.FillHalo(memory.data(), kPadding, n, begin, std::min(height, begin + rows_at_once));
                }
              }
              for (int n = 0; n < 2; ++n) {
                for (int y = 0; y < height; ++y) {
                  for (int x = 0; x < width; ++x) {
                    for (int c = 0; c < channels; ++c) {
                      const int64_t at = placed.Offset(n, y, x) + c;
                      ASSERT_TRUE(at >= 0 && at < 2 * placed.image_bytes);
                      ASSERT_TRUE(used.insert(at).second) << n << " " << y << " " << x;
                      ASSERT_EQ(memory[at], kUntouched) << "the halo covers a pixel";
                    }
                  }
                }
              }
              const int step = blocking == Blocking::kNone ? 1 : 2;
              for (int n = 0; n < 2; ++n) {
                for (int y = -step * halo; y < step * (placed.plane_height + halo); ++y) {
                  for (int x = -step * halo; x < step * (placed.plane_width + halo); ++x) {
                    if (y >= 0 && y < height && x >= 0 && x < width) continue;
                    for (int c = 0; c < channels; ++c) {
                      ASSERT_EQ(memory[placed.Offset(n, y, x) + c], kPadding) << n << " " << y << " " << x;
                    }
                  }
                }
              }
            }
          }
        }
      }
    }
  }
}

TEST(PlacementTest, Text) {
  EXPECT_EQ(PlacementText(Placement()), "dense");
  EXPECT_EQ(PlacementText(Placement{Blocking::kNone, 1, 576}), "halo 1, 576 bytes a pixel");
  EXPECT_EQ(PlacementText(Placement{Blocking::kPhasePlanes, 1, 0}), "phase planes, halo 1");
  EXPECT_EQ(PlacementText(Placement{Blocking::kSpaceToDepth, 2, 16}), "space to depth, halo 2, 16 bytes a pixel");
}

}  // namespace
}  // namespace fuselage::kernels
