#include "kernels/int8/conv2d/cuda/tiling.h"

#include "gtest/gtest.h"
#include "kernels/int8/conv2d/cuda/kernel_id.h"

namespace fuselage::int8::conv2d::cuda {
namespace {

using ::fuselage::cuda::kA100;
using ::fuselage::cuda::kH100;

int64_t Blocks(const GemmSize& size, const Tiling& tiling) {
  const TileSize& tile = kTiles[tiling.tile];
  return int64_t{1} * ((size.rows + tile.rows - 1) / tile.rows) * ((size.columns + tile.columns - 1) / tile.columns) *
         tiling.splits;
}

TEST(TilingTest, LargeProductsHaveLargeTilesAndNoSplits) {
  const Tiling tiling = ChooseTiling({256 * 14 * 14, 256, 36}, kH100, {});
  EXPECT_EQ(tiling.splits, 1);
  EXPECT_EQ(kTiles[tiling.tile].rows, 128);
  EXPECT_EQ(kTiles[tiling.tile].columns, 128);
}

TEST(TilingTest, SmallProductsFillTheDevice) {
  const GemmSize layer4 = {49, 512, 72};
  EXPECT_GE(Blocks(layer4, ChooseTiling(layer4, kH100, {})), 64);
  EXPECT_GE(Blocks(layer4, ChooseTiling(layer4, kA100, {})), 54);
}

TEST(TilingTest, SplitsHaveSteps) {
  for (int steps = 1; steps < 80; ++steps) {
    EXPECT_LE(ChooseTiling({49, 64, steps}, kH100, {}).splits, steps);
  }
}

TEST(TilingTest, HalosAreForLargeProducts) {
  GemmSize layer1 = {256 * 56 * 56, 64, 9, /*taps=*/9, /*slices=*/1, /*around=*/114};
  EXPECT_TRUE(kTiles[ChooseTiling(layer1, kH100, {}).tile].halo);
  layer1.rows = 56 * 56;
  EXPECT_EQ(kTiles[ChooseTiling(layer1, kH100, {}).tile].halo, false);
  layer1 = {256 * 56 * 56, 64, 9};
  EXPECT_EQ(kTiles[ChooseTiling(layer1, kH100, {}).tile].halo, false);
}

TEST(TilingTest, WhatHopperHasIsForHopper) {
  const GemmSize large = {256 * 56 * 56, 64, 9, /*taps=*/9, /*slices=*/1, /*around=*/114};
  EXPECT_TRUE(kTiles[ChooseTiling(large, kH100, {}).tile].hopper);
  for (int tile = kFirstHopperTile; tile < kTileCount; ++tile) {
    EXPECT_TRUE(kTiles[tile].hopper);
    EXPECT_TRUE(TileRuns(large, tile, kH100));
    EXPECT_FALSE(TileRuns(large, tile, kA100));
  }
}

// Where few blocks have many steps.
TEST(TilingTest, TeamsAreForSmallProducts) {
  EXPECT_GT(kTiles[ChooseTiling({784, 128, 18}, kH100, {}).tile].teams, 1);
  EXPECT_EQ(kTiles[ChooseTiling({3136, 64, 9}, kH100, {}).tile].teams, 1);
  EXPECT_EQ(kTiles[ChooseTiling({200704, 64, 9}, kH100, {}).tile].teams, 1);
}

TEST(TilingTest, MeasuredOnesComeFirst) {
  const Tuned tuned[] = {{90, {49, 512, 72}, {1, 7}}};
  EXPECT_EQ(ChooseTiling({49, 512, 72}, kH100, tuned), (Tiling{1, 7}));
  EXPECT_EQ(ChooseTiling({49, 512, 72}, kA100, tuned), ChooseTiling({49, 512, 72}, kA100, {}));
  EXPECT_EQ(ChooseTiling({49, 512, 71}, kH100, tuned), ChooseTiling({49, 512, 71}, kH100, {}));
}

}  // namespace
}  // namespace fuselage::int8::conv2d::cuda
