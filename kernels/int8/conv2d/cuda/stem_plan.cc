#include "kernels/int8/conv2d/cuda/stem_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/int8/conv2d/cuda/kernel_id.h"
#include "kernels/int8/conv2d/cuda/pooled_stem.h"
#include "kernels/int8/conv2d/cuda/stem.h"

namespace fuselage::int8::conv2d::cuda {
namespace {

using ::fuselage::cuda::DeviceProperties;
using ::fuselage::cuda::MakeDivider;

constexpr int64_t kIntMax = std::numeric_limits<int32_t>::max();
constexpr int kMaxGridYz = 65535;
constexpr int kMostSharedBytes = 48 << 10;  // Without opting in.
constexpr int kMostBlocks = PooledStem<kFewTapRows, 2>::kBlocks;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t RoundUp(int64_t a, int64_t b) { return CeilDiv(a, b) * b; }

StemPatch PatchOf(const Geometry& g, int64_t height, int64_t width, int threads) {
  StemPatch patch;
  const int fours = static_cast<int>(CeilDiv(width, 4));
  patch.height = static_cast<int>(height);
  patch.width = 4 * fours;
  patch.step = std::max(1, threads / fours);
  patch.rounds = static_cast<int>(CeilDiv(height, patch.step));
  patch.fours = MakeDivider(fours);
  patch.bytes = int64_t{4} * patch.step * patch.width * RoundUp(patch.rounds, StemPatch::kBatch);
  patch.three_in_words = g.in_channels == 3 && int64_t{g.batch} * g.in_height * g.in_width % 4 == 0;
  return patch;
}

// f(oc, ic, y, x, weight) of each.
template <typename F>
void ForWeights(const Problem& problem, F f) {
  const Geometry& g = problem.geometry;
  const int8_t* from = problem.weight;
  for (int oc = 0; oc < g.out_channels; ++oc) {
    for (int ic = 0; ic < g.in_channels; ++ic) {
      for (int y = 0; y < g.kernel_height; ++y) {
        for (int x = 0; x < g.kernel_width; ++x) f(oc, ic, y, x, *from++);
      }
    }
  }
}

// The pool's padding is for the output's codes, and a Stem pools sums: it has no window of padding alone.
bool EveryWindowSeesPixels(const Params& p) {
  const auto sees = [](int out, int size, int kernel, int stride, int pad) {
    for (int i = 0; i < out; ++i) {
      if (i * stride - pad >= size || i * stride - pad + kernel <= 0) return false;
    }
    return true;
  };
  const Params::Pool& pool = p.pool;
  return sees(pool.out_height, p.out_height, pool.kernel_y, pool.stride_y, pool.pad_top) &&
         sees(pool.out_width, p.out_width, pool.kernel_x, pool.stride_x, pool.pad_left);
}

bool PooledStemRuns(const Geometry& g, const Params& p) {
  const Params::Pool& pool = p.pool;
  const auto windows = [](int kernel, int stride, int dilation) {
    return (kernel == 2 || kernel == 3) && stride == 2 && dilation == 1;
  };
  return g.groups == 1 && g.in_channels <= 4 && g.kernel_width <= StemTaps::kCount && TapRowsOf(g) > 0 &&
         g.stride_y == g.stride_x && g.stride_y <= 2 && g.dilation_y == 1 && g.dilation_x == 1 && !p.activated &&
         windows(pool.kernel_y, pool.stride_y, pool.dilation_y) &&
         windows(pool.kernel_x, pool.stride_x, pool.dilation_x) && EveryWindowSeesPixels(p) &&
         int64_t{g.in_height} * g.in_width * g.in_channels <= kIntMax - 3;
}

int64_t PatchHeight(const Geometry& g, const Params::Pool& pool, int64_t rows) {
  return (2 * rows + pool.kernel_y - 3) * g.stride_y + TapRowsOf(g);
}

// A multiprocessor's blocks take what their tensor cores take: a segment's rows, half a row for the one above the
// first, and as if there were two more for weights and pixels. Fewer than three blocks take as long as three, for each
// waits for its own instructions.
double Time(const PooledStemLayout& s, int batch, const DeviceProperties& device) {
  const double blocks = 1.0 * s.across * s.down * s.channel_blocks * batch;
  return std::max(3.0, std::ceil(blocks / device.multiprocessors)) * (s.rows + 2.5);
}

}  // namespace

StemLayout StemLayoutOf(const Problem& problem) {
  const Geometry& g = problem.geometry;
  StemLayout s;
  s.weight_rows = g.kernel_height;
  s.patch =
      PatchOf(g, int64_t{StemLayout::kTileHeight - 1} * g.stride_y + int64_t{g.kernel_height - 1} * g.dilation_y + 1,
              int64_t{StemLayout::kTileWidth - 1} * g.stride_x + int64_t{StemTaps::kCount - 1} * g.dilation_x + 1,
              Stem<uint8_t>::kWarps * kWarpSize);
  s.down = static_cast<int>(CeilDiv(g.out_height, StemLayout::kTileHeight));
  s.across = static_cast<int>(CeilDiv(g.out_width, StemLayout::kTileWidth));
  s.column_tiles = MakeDivider(static_cast<uint32_t>(CeilDiv(g.out_channels, StemLayout::kTileChannels)));
  return s;
}

std::vector<int8_t> StemWeight(const Problem& problem) {
  const Geometry& g = problem.geometry;
  const int64_t tiles = CeilDiv(g.out_channels, StemLayout::kTileChannels);
  std::vector<int8_t> weight(tiles * g.kernel_height * StemLayout::kWeightBytes);
  ForWeights(problem, [&](int64_t oc, int ic, int y, int x, int8_t value) {
    const int64_t row = oc / StemLayout::kTileChannels * g.kernel_height + y;
    const int place = StemTaps::Place(x);
    weight[row * StemLayout::kWeightBytes + StemLayout::WeightPlace(oc % StemLayout::kTileChannels, place / 4) +
           place % 4 * 4 + ic] = value;
  });
  return weight;
}

int TapRowsOf(const Geometry& g) {
  return g.kernel_height <= kFewTapRows ? kFewTapRows : g.kernel_height <= kMostTapRows ? kMostTapRows : 0;
}

std::optional<PooledStemLayout> PooledStemLayoutOf(const Problem& problem, const Params& params,
                                                   const DeviceProperties& device, std::optional<int> rows) {
  const Geometry& g = problem.geometry;
  const Params::Pool& pool = params.pool;
  if (!PooledStemRuns(g, params)) return std::nullopt;
  PooledStemLayout s;
  const int64_t groups = CeilDiv(g.out_channels, PooledStemLayout::kGroupChannels);
  s.strips = groups % 2 == 0 ? 2 : 4;
  s.channel_blocks = static_cast<int>(CeilDiv(groups, PooledStemLayout::kWarps / s.strips));
  s.channel_blocks_divider = MakeDivider(s.channel_blocks);
  const int kept = pool.kernel_x - 2;
  s.strip_step = PooledStemLayout::kStripWidth / 2 - kept;
  // Patches begin with a multiple of four pixels, whose words are whole, where the row of taps leaves room before it.
  s.origin_x = (-pool.pad_left - kept) * g.stride_x - g.pad_left;
  s.first_tap = s.origin_x & 3;
  if (s.first_tap + g.kernel_width > StemTaps::kCount) s.first_tap = 0;
  s.origin_x -= s.first_tap;
  s.origin_y = -pool.pad_top * g.stride_y - g.pad_top;
  s.step_x = 2 * s.strip_step * 2 * g.stride_x;
  s.across = static_cast<int>(CeilDiv(pool.out_width, s.strips * s.strip_step));
  const auto cut = [&](int segment) {
    s.rows = std::min(segment, pool.out_height);
    s.step_y = s.rows * 2 * g.stride_y;
    s.down = static_cast<int>(CeilDiv(pool.out_height, s.rows));
    s.patch = PatchOf(g, PatchHeight(g, pool, s.rows), PooledStemLayout::PatchWidth(g.stride_x),
                      PooledStemLayout::kWarps * kWarpSize);
  };
  if (rows) {
    cut(*rows);
  } else {
    // As many blocks are to share a multiprocessor; 1 KiB of each is the driver's.
    const int64_t most_bytes =
        std::min<int64_t>(kMostSharedBytes, device.shared_bytes_per_multiprocessor / kMostBlocks - (1 << 10));
    int best = 1;
    double least = std::numeric_limits<double>::infinity();
    for (int segment = 1; segment <= pool.out_height; ++segment) {
      cut(segment);
      if (s.bytes() > most_bytes) break;
      const double time = Time(s, g.batch, device);
      if (time < least) best = segment;
      least = std::min(least, time);
    }
    cut(best);
  }
  s.input_flip = problem.input_type == DType::kI8 ? 0x80 : 0;
  if (s.bytes() > kMostSharedBytes || s.down > kMaxGridYz || int64_t{g.batch} * s.channel_blocks > kMaxGridYz / 2) {
    return std::nullopt;
  }
  return s;
}

std::vector<int8_t> PooledStemWeight(const Problem& problem, const PooledStemLayout& layout) {
  constexpr int kChannels = PooledStemLayout::kGroupChannels;
  const int tap_rows = TapRowsOf(problem.geometry);
  std::vector<int8_t> weight(int64_t{layout.padded_channels()} * tap_rows * StemTaps::kBytes);
  ForWeights(problem, [&](int64_t oc, int ic, int y, int x, int8_t value) {
    weight[(oc / kChannels * tap_rows + y) * PooledStemLayout::kRowBytes +
           PooledStemLayout::WeightPlace(oc % kChannels, x + layout.first_tap) + ic] = value;
  });
  return weight;
}

std::vector<int32_t> PooledStemBias(const Problem& problem, const PooledStemLayout& layout) {
  std::vector<int32_t> bias = problem.epilogue.bias;
  if (layout.input_flip == 0) return bias;
  // Modulo 2^32, as sums are.
  ForWeights(problem, [&](int oc, int, int, int, int8_t value) {
    bias[oc] = static_cast<int32_t>(static_cast<uint32_t>(bias[oc]) - 128u * static_cast<uint32_t>(value));
  });
  return bias;
}

}  // namespace fuselage::int8::conv2d::cuda
