#include "kernels/int8/conv2d/cuda/tiling.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/int8/conv2d/cuda/kernels.h"

namespace fuselage::int8::conv2d::cuda {
namespace {

using ::fuselage::cuda::DeviceProperties;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Blocks of a tile that fit a multiprocessor at once; 0: none.
int Resident(int tile, const DeviceProperties& device) {
  KernelId id;
  id.family = Family::kGemm;
  id.tile = tile;
  const int shared_bytes = GemmSharedBytes(id);
  if (shared_bytes > device.shared_bytes_per_block) return 0;
  // Each block also has 1 KiB of the system's; at most 128 registers a thread, of 64 Ki.
  const int threads = kTiles[tile].warps * kWarpSize;
  return std::min({device.shared_bytes_per_multiprocessor / (shared_bytes + 1024),
                   device.threads_per_multiprocessor / threads, 65536 / (128 * threads)});
}

// Cycles. The constants are of the order of what is published for sm_80 to sm_90; only their ratios matter.
double Estimate(const GemmSize& size, const Tiling& tiling, const DeviceProperties& device) {
  constexpr double kStepLatency = 300;    // Of a buffer's way through the pipeline, where few blocks hide it.
  constexpr double kBlockLatency = 1500;  // Filling the pipeline, and the epilogue.
  constexpr double kLaunch = 2500;        // Of Reduce.
  constexpr double kBytesPerCycle = 32;   // Of a multiprocessor, to and from the L2 cache.
  const double macs_per_cycle = device.sm >= 90 ? 2500 : device.sm == 80 ? 1600 : 800;

  const TileSize& tile = kTiles[tiling.tile];
  const int resident = Resident(tiling.tile, device);
  if (resident == 0) return std::numeric_limits<double>::infinity();
  const int64_t blocks = CeilDiv(size.rows, tile.rows) * CeilDiv(size.columns, tile.columns) * tiling.splits;
  const int64_t busiest = CeilDiv(blocks, device.multiprocessors), waves = CeilDiv(busiest, resident);
  const double steps = static_cast<double>(CeilDiv(size.steps, tiling.splits));
  const double multiply = busiest * steps * tile.rows * tile.columns * kStep / macs_per_cycle;
  const double fetch = busiest * steps * (tile.rows + tile.columns) * kStep / kBytesPerCycle / 2;
  const double latency = waves * (steps * kStepLatency + kBlockLatency);
  double cycles = std::max({multiply, fetch, latency}) + kBlockLatency;
  if (tiling.splits > 1) {
    const double bytes = 8.0 * tiling.splits * size.rows * CeilDiv(size.columns, tile.columns) * tile.columns;
    cycles += kLaunch + bytes / kBytesPerCycle / device.multiprocessors;
  }
  return cycles;
}

}  // namespace

absl::Span<const Tuned> TunedTilings() { return {}; }

Tiling ChooseTiling(const GemmSize& size, const DeviceProperties& device, absl::Span<const Tuned> tuned) {
  for (const Tuned& entry : tuned) {
    if (entry.sm == device.sm && entry.size == size) return entry.tiling;
  }
  Tiling best;
  double least = std::numeric_limits<double>::infinity();
  for (int tile = 0; tile < kTileCount; ++tile) {
    for (int splits = 1; splits <= 16 && (splits == 1 || size.steps / splits >= 2); ++splits) {
      const double cycles = Estimate(size, {tile, splits}, device);
      if (cycles < least) {
        least = cycles;
        best = {tile, splits};
      }
    }
  }
  return best;
}

}  // namespace fuselage::int8::conv2d::cuda
