// Every kernel, run on the host, against the CPU's kernels, byte for byte: im2col, permutations, fragments, splits,
// races and bounds, without a GPU.
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/int8/conv2d/cuda/testing.h"

namespace fuselage::int8::conv2d::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Returns the plan's name.
std::string ExpectEqualsCpu(const Case& c, uint64_t seed, const PlanOptions& options = {},
                            const kernels::PoolWindow* pool = nullptr,
                            const ::fuselage::cuda::DeviceProperties& device = ::fuselage::cuda::kH100) {
  const Instance instance(c, seed);
  const auto plan = PlanOf(pool == nullptr ? instance.Desc() : PooledDesc(instance, *pool), options, device);
  EXPECT_TRUE(plan.ok()) << plan.status() << " " << c.ToString();
  if (!plan.ok()) return "";
  const std::vector<uint8_t> wanted = OnCpu(instance, pool);
  const auto bytes = Emulate(*plan, instance, static_cast<int64_t>(wanted.size()));
  EXPECT_TRUE(bytes.ok()) << plan->name() << ": " << bytes.status() << " " << c.ToString();
  if (!bytes.ok()) return "";
  EXPECT_TRUE(*bytes == wanted) << plan->name() << " differs: " << c.ToString();
  return plan->name();
}

TEST(EmulationTest, ResNet18Batch1) {
  for (const Case& c : ResNet18(1)) ExpectEqualsCpu(c, 1);
}

TEST(EmulationTest, ResNet18Batch3) {
  for (const Case& c : ResNet18(3)) ExpectEqualsCpu(c, 2);
}

TEST(EmulationTest, EveryTileAndSplit) {
  std::set<std::string> names;
  for (int i = 0; i < 200; ++i) {
    const bool halo = kTiles[i % kTileCount].halo;
    PlanOptions options;
    options.family = Family::kGemm;
    const Case c = halo ? RandomHaloCase(i) : RandomCase(i, 16, /*groups=*/false);
    options.tiling = TilingFor(c, i % kTileCount, 1 + i / kTileCount % 5);
    names.insert(ExpectEqualsCpu(c, i, options));
    if (HasFailure()) return;
  }
  EXPECT_GE(names.size(), 4 * kTileCount);  // Small convolutions have fewer steps than splits.
}

TEST(EmulationTest, Clusters) {
  std::set<std::string> names;
  for (int i = 0; i < 60; ++i) {
    PlanOptions options;
    options.family = Family::kGemm;
    options.tiling = Tiling{kLeastTile + i / 3 % 2, 2 << i % 3, /*clusters=*/true};
    Case c = RandomCase(500 + i, 16, /*groups=*/false);
    c.in_channels = 128 * (1 + i % 4);
    c.out_channels = i % 2 == 0 ? 1 + i : 4 * (1 + i % 12);
    const auto plan = PlanOf(Instance(c, i).Desc(), options);
    if (absl::IsFailedPrecondition(plan.status())) continue;  // Fewer steps than splits.
    names.insert(ExpectEqualsCpu(c, i, options));
    if (HasFailure()) return;
  }
  EXPECT_THAT(names, ElementsAre("cuda gemm 32x32 teams cluster 2", "cuda gemm 32x32 teams cluster 4",
                                 "cuda gemm 32x32 teams cluster 8", "cuda gemm 32x64 teams cluster 2",
                                 "cuda gemm 32x64 teams cluster 4", "cuda gemm 32x64 teams cluster 8"));
  PlanOptions options;
  options.tiling = Tiling{kLeastTile, 4, /*clusters=*/true};
  const Instance instance(SquareCase(512, /*size=*/7, 512, /*kernel=*/3, /*stride=*/1), 1);
  const auto plan = PlanOf(instance.Desc(), options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->tickets(), 0);
  EXPECT_EQ(plan->scratch_bytes(), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(PlanOf(instance.Desc(), options, ::fuselage::cuda::kA100).status()));
  for (const Tiling& tiling :
       {Tiling{kLeastTile, 1, true}, Tiling{kLeastTile, 3, true}, Tiling{kLeastTile, 16, true}, Tiling{3, 4, true}}) {
    options.tiling = tiling;
    EXPECT_TRUE(absl::IsFailedPrecondition(PlanOf(instance.Desc(), options).status())) << tiling.splits;
  }
}

// What a block fetches by cp.async, of ResNet18's layers of 64 and of 128 channels: with a halo a third of what a Gemm
// of its tile moves to shared memory, of which padding is stored.
TEST(EmulationTest, HaloFetchesThePatchOnce) {
  for (const auto& [channels, size] : {std::make_pair(64, 56), std::make_pair(128, 28)}) {
    Case c = SquareCase(channels, size, channels, /*kernel=*/3, /*stride=*/1);
    c.batch = 4;
    const Instance instance(c, 1);
    int64_t moved = 0, copied_bytes[2];
    for (const bool halo : {false, true}) {
      const int tile = halo ? kHaloTile : 1;
      PlanOptions options;
      options.tiling = Tiling{tile, 1};
      const auto plan = PlanOf(instance.Desc(), options);
      ASSERT_TRUE(plan.ok()) << plan.status();
      const Launch& launch = plan->launches()[0];
      if (!halo) {
        moved = int64_t{launch.grid[0]} * launch.params.steps * (kTiles[tile].rows + kTiles[tile].columns) * kStep;
      }
      const std::vector<uint8_t> wanted = OnCpu(instance);
      const auto bytes = Emulate(*plan, instance, static_cast<int64_t>(wanted.size()), &copied_bytes[halo]);
      ASSERT_TRUE(bytes.ok()) << bytes.status();
      EXPECT_TRUE(*bytes == wanted);
    }
    EXPECT_LT(copied_bytes[0], moved);
    EXPECT_GT(100 * copied_bytes[0], 90 * moved);
    EXPECT_GE(moved, 3 * copied_bytes[1])
        << channels << " channels: " << copied_bytes[0] << " of " << moved << ", " << copied_bytes[1];
  }
}

// The fewest taps and the most that a tile runs, and patches that are longer than the image has pixels.
TEST(EmulationTest, HalosOfManyShapes) {
  for (int tile = 0; tile < kTileCount; ++tile) {
    if (!kTiles[tile].halo) continue;
    PlanOptions options;
    options.tiling = Tiling{tile, 1};
    for (const auto& [height, width] :
         {std::make_pair(3, 1), std::make_pair(1, 3), std::make_pair(5, 6), std::make_pair(4, 8), std::make_pair(8, 4),
          std::make_pair(1, 32), std::make_pair(32, 1)}) {
      for (const int in_channels : {16, 64, 208}) {
        Case c = SquareCase(in_channels, /*size=*/9, /*out_channels=*/72, /*kernel=*/1, /*stride=*/1);
        c.batch = 4;
        c.width = 11;
        c.kernel_height = height, c.kernel_width = width;
        c.top = height / 3, c.bottom = height - 1 - c.top;
        c.left = width - 1 - width / 3, c.right = width / 3;
        c.residual_type = DType::kI8;
        const auto plan = PlanOf(Instance(c, height).Desc(), options);
        // Of 32 taps Hopper's halos would do 33.
        ASSERT_EQ(plan.ok(), !kTiles[tile].hopper || height * width <= 30) << plan.status();
        if (!plan.ok()) continue;
        EXPECT_THAT(ExpectEqualsCpu(c, height, options), HasSubstr("halo"));
        if (HasFailure()) return;
      }
    }
  }
}

// Patches of one box and of several, of tiles with one slice of channels and with two.
TEST(EmulationTest, HalosOfWideImages) {
  for (int tile = 0; tile < kTileCount; ++tile) {
    if (!kTiles[tile].halo) continue;
    PlanOptions options;
    options.tiling = Tiling{tile, 1};
    for (const int width : {60, 100, 199}) {
      Case c = SquareCase(width == 60 ? 128 : 48, /*size=*/5, /*out_channels=*/80, /*kernel=*/3, /*stride=*/1);
      c.width = width;
      c.residual_type = DType::kU8;
      EXPECT_THAT(ExpectEqualsCpu(c, tile, options), HasSubstr("halo"));
      if (HasFailure()) return;
    }
  }
}

// Of one slice of channels and of several, whose weights stay, or come again for each tile; a block's last tile may be
// the one before the last.
TEST(EmulationTest, BlocksForHopperTakeSeveralTiles) {
  ::fuselage::cuda::DeviceProperties one = ::fuselage::cuda::kH100;
  one.multiprocessors = 1;
  for (int tile = kFirstHopperTile; tile < kTileCount; ++tile) {
    if (!kTiles[tile].halo) continue;
    PlanOptions options;
    options.tiling = Tiling{tile, 1};
    for (const int in_channels : {48, 128, 192}) {
      for (const int batch : {5, 9}) {
        Case c = SquareCase(in_channels, /*size=*/12, /*out_channels=*/72, /*kernel=*/3, /*stride=*/1);
        c.batch = batch;
        if (batch == 5) c.residual_type = DType::kU8;
        const auto plan = PlanOf(Instance(c, 1).Desc(), options, one);
        ASSERT_TRUE(plan.ok()) << plan.status();
        const Launch& launch = plan->launches()[0];
        EXPECT_LT(launch.grid[0] * kTiles[tile].rows * kTiles[tile].columns,
                  launch.params.rows * launch.params.padded_channels);
        ExpectEqualsCpu(c, tile, options, nullptr, one);
        if (HasFailure()) return;
      }
    }
  }
}

TEST(EmulationTest, HalosAreForStride1) {
  PlanOptions options;
  options.tiling = Tiling{kHaloTile, 1};
  const auto name_of = [&](const Case& c) {
    const Instance instance(c, 1);
    const auto plan = PlanOf(instance.Desc(), options);
    return plan.ok() ? plan->name() : absl::StatusCodeToString(plan.status().code());
  };
  EXPECT_EQ(name_of(SquareCase(64, 14, 64, /*kernel=*/3, /*stride=*/1)), "cuda halo 256x64");
  EXPECT_EQ(name_of(SquareCase(64, 14, 64, /*kernel=*/3, /*stride=*/2)), "FAILED_PRECONDITION");
  EXPECT_EQ(name_of(SquareCase(64, 14, 64, /*kernel=*/1, /*stride=*/1)), "FAILED_PRECONDITION");
  EXPECT_EQ(name_of(SquareCase(64, 14, 64, /*kernel=*/7, /*stride=*/1)), "FAILED_PRECONDITION");
  EXPECT_EQ(name_of(SquareCase(64, 300, 64, /*kernel=*/3, /*stride=*/1)), "FAILED_PRECONDITION");
  EXPECT_EQ(name_of(SquareCase(72, 14, 64, /*kernel=*/3, /*stride=*/1)), "FAILED_PRECONDITION");
  options.tiling->splits = 2;
  EXPECT_EQ(name_of(SquareCase(64, 14, 64, /*kernel=*/3, /*stride=*/1)), "FAILED_PRECONDITION");
}

TEST(EmulationTest, AnyChannels) {
  std::set<std::string> names;
  for (int i = 0; i < 100; ++i) {
    names.insert(ExpectEqualsCpu(RandomCase(1000 + i, 1, /*groups=*/false), i));
    if (HasFailure()) return;
  }
  EXPECT_EQ(names.count("cuda gemm 64x64 by 1 bytes"), 1);
  EXPECT_EQ(names.count("cuda stem"), 1);
}

TEST(EmulationTest, EightByteChannels) {
  for (int i = 0; i < 60; ++i) {
    Case c = RandomCase(5000 + i, 16, /*groups=*/false);
    c.in_channels -= 8;
    const std::string name = "cuda gemm 64x64 by 8 bytes";
    EXPECT_EQ(ExpectEqualsCpu(c, i), c.activation.is_clamp() ? name : name + ", function");
    if (HasFailure()) return;
  }
}

TEST(EmulationTest, FewChannels) {
  for (int i = 0; i < 100; ++i) {
    Case c = RandomCase(2000 + i, 1, /*groups=*/false);
    c.in_channels = 1 + i % 4;
    EXPECT_EQ(ExpectEqualsCpu(c, i), c.activation.is_clamp() ? "cuda stem" : "cuda gemm 64x64 by 1 bytes, function");
    if (HasFailure()) return;
  }
}

TEST(EmulationTest, Depthwise) {
  PlanOptions options;
  options.family = Family::kDepthwise;
  for (int i = 0; i < 100; ++i) {
    const Case c = RandomDepthwiseCase(6000 + i);
    const char* name = c.in_channels % 16 == 0 ? "cuda depthwise" : "cuda depthwise by 4 bytes";
    EXPECT_EQ(ExpectEqualsCpu(c, i, options), name);
    if (HasFailure()) return;
  }
}

TEST(EmulationTest, Groups) {
  std::set<std::string> names;
  for (int i = 0; i < 80; ++i) {
    PlanOptions options;
    options.family = Family::kGemm;
    names.insert(ExpectEqualsCpu(RandomGroupedCase(7000 + i), i, options));
    if (HasFailure()) return;
  }
  for (const char* name : {"cuda diagonal gemm 64x64", "cuda gemm 64x64 by 8 bytes", "cuda gemm 64x64 by 1 bytes"}) {
    EXPECT_EQ(names.count(name), 1) << name;
  }
}

TEST(EmulationTest, GroupsInEveryTile) {
  std::set<std::string> names;
  for (int i = 0; i < 120; ++i) {
    const int tile = 1 + i % (kTileCount - 1);
    if (kTiles[tile].columns != kGroupColumns) continue;
    const bool halo = kTiles[tile].halo, diagonal = i / 8 % 2 == 0 && (tile == kHaloTile || tile == kDiagonalTile);
    PlanOptions options;
    options.family = Family::kGemm;
    Case c = halo ? RandomHaloCase(8000 + i) : RandomCase(8000 + i, 16, /*groups=*/false);
    const int inputs = 8 << i % 3;
    c = diagonal ? WithGroups(c, 4 + i % 5 * 2, inputs, inputs) : WithGroups(c, 2 + i % 3, 3 * 16, 1 + i % 40);
    options.tiling = TilingFor(c, tile, 1 + i % 3);
    names.insert(ExpectEqualsCpu(c, i, options));
    if (HasFailure()) return;
  }
  for (const char* name : {"cuda diagonal halo 256x64", "cuda halo 256x64", "cuda diagonal gemm 64x64 split 2",
                           "cuda gemm 128x64 split 2", "cuda gemm 32x64 split 3"}) {
    EXPECT_EQ(names.count(name), 1) << name;
  }
}

TEST(EmulationTest, Direct) {
  for (int i = 0; i < 40; ++i) {
    PlanOptions options;
    options.family = Family::kDirect;
    EXPECT_EQ(ExpectEqualsCpu(RandomCase(3000 + i, 1, /*groups=*/i % 2 == 0), i, options), "cuda direct");
    if (HasFailure()) return;
  }
}

TEST(EmulationTest, ResNet18StemWithItsPool) {
  const Case c = ResNet18(3)[0];
  const kernels::PoolWindow pool = SquarePool(c, /*kernel=*/3, /*stride=*/2, /*padding=*/1);
  EXPECT_THAT(ExpectEqualsCpu(c, 1, {}, &pool), StartsWith("cuda pooled stem"));
}

// In segments of every length.
TEST(EmulationTest, PooledStems) {
  int run = 0;
  for (int i = 0; i < 400; ++i) {
    const PooledStemCase stem = RandomPooledStem(9000 + i, i % 2 == 0 ? kFewTapRows : kMostTapRows);
    PlanOptions options;
    options.segment = 1 + i / 2 % 9;
    const std::string name = ExpectEqualsCpu(stem.conv, i, options, &stem.pool);
    if (HasFailure()) return;
    run += absl::StartsWith(name, "cuda pooled stem");
  }
  EXPECT_GT(run, 300);  // The others have windows of padding alone.
}

TEST(EmulationTest, Pools) {
  std::set<std::string> names;
  for (int i = 0; i < 200; ++i) {
    Case c = RandomCase(4000 + i, 1, /*groups=*/i % 8 == 0);
    if (i % 2 == 1) c.in_channels = 1 + i / 2 % 4;
    c.residual_type.reset();
    if (c.output_type == DType::kF32) c.output_type = DType::kU8;
    const kernels::PoolWindow pool = RandomPool(i, c);
    names.insert(ExpectEqualsCpu(c, i, {}, &pool));
    if (HasFailure()) return;
  }
  for (const char* name : {"cuda stem, pool", "cuda gemm 64x64 by 1 bytes, pool", "cuda gemm 64x64 by 8 bytes, pool"}) {
    EXPECT_EQ(names.count(name), 1) << name;
  }
}

// Indices of 32 bits are for what they can reach.
TEST(PlanTest, LargeTensorsHaveTheDirectKernel) {
  Case c;
  c.height = c.width = 64;
  c.in_channels = 64;
  const Instance instance(c, 1);
  const auto name_of = [&](int64_t batch) {
    kernels::KernelDesc desc = instance.Desc();
    desc.inputs[0]->shape[0] = desc.outputs[0].shape[0] = batch;
    const auto plan = PlanOf(desc, {});
    return plan.ok() ? plan->name() : absl::StatusCodeToString(plan.status().code());
  };
  EXPECT_EQ(name_of(8191), "cuda hopper halo 128x64");  // 2^31 - 2^18 bytes of input.
  EXPECT_EQ(name_of(8192), "cuda direct");
  EXPECT_EQ(name_of(1 << 19), "UNIMPLEMENTED");  // 2^31 output pixels.
}

TEST(PlanTest, LargeDepthwiseConvolutionsRunOnTensorCores) {
  const auto name_of = [&](int batch, int channels, int stride) {
    Case c = WithGroups(SquareCase(64, 56, 64, /*kernel=*/3, stride), channels, 1, 1);
    c.batch = batch;
    return PlanOf(Instance(c, 1).Desc(), {})->name();
  };
  EXPECT_EQ(name_of(1, 64, 1), "cuda depthwise");
  EXPECT_EQ(name_of(64, 64, 1), "cuda diagonal halo 256x64");
  EXPECT_EQ(name_of(64, 64, 2), "cuda depthwise");
  EXPECT_EQ(name_of(64, 32, 1), "cuda depthwise");
  EXPECT_EQ(name_of(64, 72, 1), "cuda depthwise by 4 bytes");
}

// Short segments where they are to fill a device, long ones where each has a row above it to compute once more.
TEST(PlanTest, SegmentsOfAPooledStem) {
  const Case c = ResNet18(1)[0];
  const kernels::PoolWindow pool = SquarePool(c, /*kernel=*/3, /*stride=*/2, /*padding=*/1);
  const Instance instance(c, 1);
  const auto rows_of = [&](int64_t batch, const ::fuselage::cuda::DeviceProperties& device) {
    kernels::KernelDesc desc = PooledDesc(instance, pool);
    desc.inputs[0]->shape[0] = desc.outputs[0].shape[0] = batch;
    const Launch launch = PlanOf(desc, {}, device)->launches()[0];
    EXPECT_EQ(launch.id.family, Family::kPooledStem);
    EXPECT_LE(4 * launch.shared_bytes, device.shared_bytes_per_multiprocessor);
    return launch.params.pooled_stem.rows;
  };
  using ::fuselage::cuda::kA100;
  using ::fuselage::cuda::kH100;
  EXPECT_EQ(rows_of(1, kH100), 1);
  EXPECT_EQ(rows_of(16, kH100), 10);
  EXPECT_EQ(rows_of(256, kH100), 28);
  EXPECT_EQ(rows_of(256, kA100), 28);
}

TEST(PlanTest, FamiliesThatDoNotFitAreErrors) {
  Case c;
  const Instance aligned(c, 1);
  PlanOptions stem, pooled_stem, gemm;
  stem.family = Family::kStem;
  pooled_stem.family = Family::kPooledStem;
  gemm.family = Family::kGemm;
  EXPECT_EQ(PlanOf(aligned.Desc(), stem).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(PlanOf(aligned.Desc(), pooled_stem).status().code(), absl::StatusCode::kFailedPrecondition);
  c.groups = 2;
  const Instance grouped(c, 1);
  gemm.tiling = Tiling{0, 1};  // Of 128 columns.
  EXPECT_EQ(PlanOf(grouped.Desc(), gemm).status().code(), absl::StatusCode::kFailedPrecondition);
  gemm.tiling->tile = kDiagonalTile;
  EXPECT_TRUE(PlanOf(grouped.Desc(), gemm).ok());
}

// What int8.conv2d_max_pool2d must have.
TEST(PooledConvTest, WrongDescriptionsAreErrors) {
  const Instance instance(Case(), 1);
  kernels::PoolWindow pool;
  for (auto& axis : pool.axes) axis = {8, 4, /*kernel=*/2, /*stride=*/2, /*dilation=*/1, 0, 0};
  const kernels::KernelDesc good = PooledDesc(instance, pool);
  EXPECT_TRUE(PlanOf(good, {}).ok()) << PlanOf(good, {}).status();
  const auto code = [&](auto change) {
    kernels::KernelDesc desc = good;
    change(desc);
    return PlanOf(desc, {}).status().code();
  };
  using kernels::KernelDesc;
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(code([](KernelDesc& d) { d.outputs[0].shape[3] = 5; }), invalid);
  EXPECT_EQ(code([](KernelDesc& d) { d.parameters.erase("weight"); }), invalid);
  EXPECT_EQ(code([](KernelDesc& d) { d.inputs[0]->shape.pop_back(); }), invalid);
  EXPECT_EQ(code([](KernelDesc& d) { d.attributes.at("stride") = std::vector<int64_t>{0, 1}; }), invalid);
  EXPECT_EQ(code([](KernelDesc& d) { d.attributes.at("dilation") = std::vector<int64_t>{1LL << 40, 1}; }), invalid);
  EXPECT_EQ(code([](KernelDesc& d) { d.attributes.at("pool_stride") = std::vector<int64_t>{0, 1}; }), invalid);
  EXPECT_EQ(code([](KernelDesc& d) { d.outputs[0].dtype = DType::kF32; }), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace fuselage::int8::conv2d::cuda
