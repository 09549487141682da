#include "kernels/int8/conv2d/cuda/tiling.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/int8/conv2d/cuda/kernels.h"

namespace fuselage::int8::conv2d::cuda {
namespace {

using ::fuselage::cuda::DeviceProperties;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// What a multiprocessor multiplies in a cycle, by kernels as they are here.
double MacsOf(const TileSize& tile, const DeviceProperties& device) {
  if (tile.hopper) return 4150;
  return device.sm >= 90 ? 1320 : device.sm == 80 ? 900 : 450;
}

// The cycles of a step beside its products, where one block has no other beside it: barrier, ldmatrix, and what is
// computed to fetch another step.
double LatencyOf(const TileSize& tile) {
  if (tile.hopper) return tile.halo ? 178 : 333;
  return tile.halo ? 48 : tile.teams > 1 ? 158 : 123;
}

// Cycles. The constants are fitted to the times of every tiling of ResNet18's layers on an H100, at batch 1, 64 and 256
// (tiling_bench), and 16: they are off by 10 % in the mean, and what is chosen by them takes 1.2 % longer than the
// best. Other devices have those of their rates.
double Estimate(const GemmSize& size, const Tiling& tiling, const DeviceProperties& device) {
  constexpr double kBlock = 1620;       // Filling the pipeline and emptying it,
  constexpr double kShortBlock = 1930;  // that of a ShortGemm,
  constexpr double kAlone = 784;        // and what blocks beside each other meet together.
  constexpr double kTicket = 3120;      // A store, an atomic and a load of the L2 cache, each after the other.
  constexpr double kCluster = 258;      // A store to another multiprocessor, and whoever comes last,
  constexpr double kInCluster = 148;    // of so many.
  constexpr double kSharedBytes = 128;  // Per cycle of a multiprocessor, shared memory.
  constexpr double kBytes = 32.1;       // Per cycle of a multiprocessor, from and to the L2 cache.
  constexpr double kOutputs = 12;       // Per cycle of a multiprocessor, in the epilogue.
  const TileSize& tile = kTiles[tiling.tile];
  const double macs = MacsOf(tile, device), latency = LatencyOf(tile);
  const int resident = BlocksAtOnce(size, tiling, device);
  if (resident == 0) return std::numeric_limits<double>::infinity();
  const int64_t tiles = CeilDiv(size.rows, tile.rows) * CeilDiv(size.columns, tile.columns);
  const int64_t blocks = tiles * tiling.splits;
  const auto steps = static_cast<double>(tile.halo ? HaloTaps(size, tiling.tile) * size.slices
                                                   : CeilDiv(CeilDiv(size.steps, tiling.splits), tile.teams));
  // Bytes from the L2 cache: of pixels, in a step and before the first.
  const int patch = tile.halo ? (tile.rows + size.around) * cuda::kStep : 0;
  const int pixels = tile.halo ? patch / size.taps : tile.rows * cuda::kStep;
  double cycles = 0;
  // The busiest multiprocessor's time, one wave of blocks after the other. A HopperHalo's blocks take so many tiles
  // each.
  int64_t left = CeilDiv(blocks, device.multiprocessors);
  if (tile.halo && tile.hopper) {
    left = CeilDiv(blocks, int64_t{resident} * device.multiprocessors) * std::min<int64_t>(resident, left);
  }
  for (; left > 0; left -= resident) {
    const auto beside = static_cast<double>(std::min<int64_t>(left, resident));
    const int fetched = tile.teams * (pixels + tile.columns * cuda::kStep);
    // Stored by copies, and loaded by each warp, or group of warps.
    const int groups = tile.hopper ? tile.warps_down / 4 : tile.warps_down;
    const int loads = tile.rows * tile.warps_across + tile.columns * groups;
    const int shared = fetched + tile.teams * loads * cuda::kStep;
    const double multiply = std::max(tile.teams * tile.rows * tile.columns * cuda::kStep / macs, shared / kSharedBytes);
    // A ShortGemm's weights are there before.
    const int waited_for = tile.teams > 1 ? tile.teams * pixels : fetched;
    const double step = std::max(latency + beside * multiply, beside * waited_for / kBytes);
    cycles += steps * step + (tile.teams > 1 ? kShortBlock : kBlock) + kAlone / beside + patch / kBytes +
              beside * tile.rows * tile.columns / kOutputs;
  }
  if (tiling.clusters) {
    cycles += kCluster + kInCluster * tiling.splits + 4.0 * tile.rows * tile.columns / kBytes;
  } else if (tiling.splits > 1) {
    // Every block stores its sums, the last of a tile loads those of the others.
    const int64_t moved =
        CeilDiv(blocks, device.multiprocessors) + CeilDiv(tiles, device.multiprocessors) * (tiling.splits - 1);
    cycles += kTicket + 4.0 * static_cast<double>(moved) * tile.rows * tile.columns / kBytes;
  }
  return cycles;
}

}  // namespace

absl::Span<const Tuned> TunedTilings() { return {}; }

int HaloTaps(const GemmSize& size, int tile) {
  return kTiles[tile].hopper ? static_cast<int>(CeilDiv(size.taps, kHopperTaps)) * kHopperTaps : size.taps;
}

int BlocksAtOnce(const GemmSize& size, const Tiling& tiling, const DeviceProperties& device) {
  KernelId id;
  id.family = Family::kGemm;
  id.tile = tiling.tile;
  const TileSize& tile = kTiles[tiling.tile];
  const int shared_bytes = GemmSharedBytes(id, /*residual=*/true, tile.rows + size.around,
                                           static_cast<int>(CeilDiv(size.steps, tiling.splits)));
  if (shared_bytes > device.shared_bytes_per_block) return 0;
  // Each block also has 1 KiB of the system's. Registers: what the kernels are compiled for.
  const int threads = tile.warps() * kWarpSize;
  return std::min({device.shared_bytes_per_multiprocessor / (shared_bytes + 1024),
                   device.threads_per_multiprocessor / threads,
                   WithGemm<uint8_t>(id, [](auto kernel) { return decltype(kernel)::kBlocks; })});
}

bool TileRuns(const GemmSize& size, int tile, const DeviceProperties& device) {
  if (kTiles[tile].hopper && (device.sm != 90 || size.diagonal)) return false;
  if (size.grouped && kTiles[tile].columns != kGroupColumns) return false;
  if (kTiles[tile].halo) return size.taps > 0 && HaloTaps(size, tile) <= kMostTaps;
  return !size.diagonal || tile == kDiagonalTile;
}

bool TilingRuns(const GemmSize& size, const Tiling& tiling, const DeviceProperties& device) {
  const TileSize& tile = kTiles[tiling.tile];
  const int splits = tiling.splits;
  if (tile.teams > 1 && CeilDiv(size.steps, splits) > kMostShortSteps) return false;
  if (BlocksAtOnce(size, tiling, device) == 0) return false;
  if (!TileRuns(size, tiling.tile, device)) return false;
  if (tiling.clusters && (device.sm < 90 || tile.teams == 1 || splits < 2 || splits > kMostOfCluster)) return false;
  if (tiling.clusters && (splits & (splits - 1)) != 0) return false;  // Shares are powers of two.
  return tile.halo ? splits == 1 : NonEmptySplits(size.steps, splits) == splits;
}

Tiling ChooseTiling(const GemmSize& size, const DeviceProperties& device, absl::Span<const Tuned> tuned) {
  for (const Tuned& entry : tuned) {
    if (entry.sm == device.sm && entry.size == size) return entry.tiling;
  }
  Tiling best;
  double least = std::numeric_limits<double>::infinity();
  for (int tile = 0; tile < kTileCount; ++tile) {
    for (int splits = 1; splits <= 16 && (splits == 1 || size.steps / splits >= 2); ++splits) {
      for (const bool clusters : {false, true}) {
        const Tiling tiling = {tile, splits, clusters};
        if (!TilingRuns(size, tiling, device)) continue;
        const double cycles = Estimate(size, tiling, device);
        if (cycles < least) {
          least = cycles;
          best = tiling;
        }
      }
    }
  }
  return best;
}

}  // namespace fuselage::int8::conv2d::cuda
