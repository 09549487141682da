// Operands that lie otherwise than dense, and ResNet18's layers as a graph places them.
#include <map>
#include <string>

#include "gtest/gtest.h"
#include "kernels/int8/conv2d/conv2d.h"
#include "kernels/int8/conv2d/testing/compare.h"
#include "kernels/int8/conv2d/testing/testing.h"

namespace fuselage::int8::conv2d {
namespace {

using kernels::KernelDesc;

// Placements that suit the case or do not: what a variant cannot read in place it copies or declines.
void PlaceAtRandom(uint64_t seed, Case* c) {
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 99;
  const auto pick = [&](int count) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int>((state >> 33) % count);
  };
  const auto any = [&](int channels) {
    kernels::Placement placement;
    const kernels::Blocking blockings[] = {kernels::Blocking::kNone, kernels::Blocking::kNone,
                                           kernels::Blocking::kPhasePlanes, kernels::Blocking::kSpaceToDepth};
    placement.blocking = blockings[pick(4)];
    placement.halo = pick(2) * pick(4);
    const int codes = placement.blocking == kernels::Blocking::kSpaceToDepth ? 4 * channels : channels;
    if (pick(3) == 0) placement.pixel_bytes = codes + pick(20);
    return placement;
  };
  if (pick(3) != 0) c->input_placement = any(c->in_channels);
  if (pick(3) == 0) c->input_placement = PreferredInputPlacement(EmulatedAmx(), Instance(*c, seed).Desc());
  if (c->residual_type && pick(2) == 0) c->residual_placement = any(c->out_channels);
  if (c->output_type != DType::kF32 && pick(3) != 0) c->output_placement = any(c->out_channels);
}

TEST(PlacementTest, VariantsEqualScalarOnPlacedOperands) {
  std::map<std::string, int> ran;
  for (uint64_t seed = 5000; seed < 6500; ++seed) {
    Case c = RandomCase(seed);
    if (!c.valid()) continue;
    PlaceAtRandom(seed, &c);
    ExpectVariantsEqual(c, seed, &ran);
    if (HasFailure()) return;
  }
  ExpectRan(ran, 300);
}

// As in a concatenation: channels of wider tensors, with others beside them.
TEST(PlacementTest, ChannelsOfWiderTensors) {
  Case depthwise = SquareCase(48, 11, 48, 3, 1), winograd = SquareCase(64, 13, 40, 3, 1);
  depthwise.groups = 48;
  std::map<std::string, int> ran;
  uint64_t seed = 1;
  for (Case c : {SquareCase(64, 9, 40, 1, 1), SquareCase(12, 14, 32, 1, 1), SquareCase(64, 9, 128, 1, 2),
                 SquareCase(20, 10, 33, 3, 1), winograd, depthwise}) {
    for (const int threads : {1, 3}) {
      for (const bool with_residual : {false, true}) {
        c.batch = c.threads = threads;
        c.input_placement.pixel_bytes = c.in_channels + 37;
        c.output_placement.pixel_bytes = c.out_channels + 100;
        if (with_residual) c.residual_type = DType::kU8;
        c.residual_placement.pixel_bytes = with_residual ? c.out_channels + 3 : 0;
        ExpectVariantsEqual(c, ++seed, &ran);
        c.residual_type.reset();
      }
    }
  }
  EXPECT_GE(ran["amx_emulated"], 16);
}

const Case kResNet18[] = {
    SquareCase(3, 224, 64, 7, 2),   SquareCase(64, 56, 64, 3, 1),   SquareCase(64, 56, 128, 3, 2),
    SquareCase(64, 56, 128, 1, 2),  SquareCase(128, 28, 128, 3, 1), SquareCase(128, 28, 256, 3, 2),
    SquareCase(128, 28, 256, 1, 2), SquareCase(256, 14, 256, 3, 1), SquareCase(256, 14, 512, 3, 2),
    SquareCase(256, 14, 512, 1, 2), SquareCase(512, 7, 512, 3, 1)};

TEST(PlacementTest, ResNet18InItsPlacements) {
  uint64_t seed = 1;
  std::map<std::string, int> ran;
  for (Case c : kResNet18) {
    c.threads = 2;
    c.input_placement = PreferredInputPlacement(EmulatedAmx(), Instance(c, seed).Desc());
    c.output_placement.halo = 1;
    if (c.in_channels == c.out_channels) c.residual_type = DType::kU8;
    ExpectVariantsEqual(c, ++seed, &ran);
  }
  EXPECT_EQ(ran["amx_emulated"], 11);
}

// Images and tiles in several parts, for the caches and the threads.
TEST(PlacementTest, LargeBatchesAndImages) {
  uint64_t seed = 1;
  std::map<std::string, int> ran;
  for (const int batch : {7, 20, 64}) {
    for (const int threads : {1, 3}) {
      Case c = batch == 64   ? SquareCase(16, 6, 20, 3, 1)
               : batch == 20 ? SquareCase(64, 40, 8, 3, 1)
                             : SquareCase(512, 5, 160, 3, 1);
      c.batch = batch;
      c.threads = threads;
      c.residual_type = DType::kI8;
      ExpectVariantsEqual(c, ++seed, &ran);
      c.input_placement.halo = c.residual_placement.halo = c.output_placement.halo = 1;
      ExpectVariantsEqual(c, ++seed, &ran);
    }
  }
  ExpectVariantsEqual(SquareCase(64, 125, 4, 3, 1), ++seed, &ran);
  EXPECT_EQ(ran["amx_emulated"], 13);
}

TEST(PlacementTest, TilesPreferAHaloThatIsThere) {
  const auto preferred = [](const Case& c) {
    return PlacementText(PreferredInputPlacement(EmulatedAmx(), Instance(c, 1).Desc()));
  };
  EXPECT_EQ(preferred(SquareCase(3, 224, 64, 7, 2)), "space to depth, halo 2, 16 bytes a pixel");
  EXPECT_EQ(preferred(SquareCase(64, 56, 64, 3, 1)), "halo 1");
  EXPECT_EQ(preferred(SquareCase(64, 56, 128, 3, 2)), "phase planes, halo 1");
  EXPECT_EQ(preferred(SquareCase(64, 56, 128, 1, 2)), "phase planes, halo 1");
  EXPECT_EQ(preferred(SquareCase(512, 7, 512, 3, 1)), "halo 1, 576 bytes a pixel");
  EXPECT_EQ(preferred(SquareCase(512, 7, 512, 1, 1)), "dense");
  EXPECT_EQ(preferred(SquareCase(24, 7, 512, 1, 1)), "24 bytes a pixel");
  Case wide = SquareCase(16, 8, 16, 3, 1);
  wide.top = wide.bottom = 100;
  EXPECT_FALSE(Supports(EmulatedAmx(), Instance(wide, 1).Desc()));
}

TEST(PlacementTest, TakesPlacementsThatCostItNothing) {
  kernels::KernelRegistry registry;
  Register(registry);
  const kernels::KernelEntry* entry = registry.FindOrNull("int8.conv2d");
  Case c = SquareCase(64, 8, 64, 3, 1);
  const auto takes = [&] {
    const Instance instance(c, 1);
    KernelDesc desc = instance.Desc();
    desc.isa = kernels::Isa::kAvx2;
    return entry->takes_placements(desc);
  };
  EXPECT_TRUE(takes());
  c.input_placement.halo = c.output_placement.halo = 1;
  EXPECT_TRUE(takes());
  c.output_placement.blocking = kernels::Blocking::kPhasePlanes;
  // Only the scalar variant would, which is the best without AVX2.
  EXPECT_EQ(takes(), !kernels::CpuSupports(kernels::Isa::kAvx2));
  const Instance instance(c, 1);
  KernelDesc desc = instance.Desc();
  desc.isa = kernels::Isa::kAvx2;
  EXPECT_TRUE(entry->preferred_placement(desc).dense());
}

}  // namespace
}  // namespace fuselage::int8::conv2d
