#include "kernels/int8/conv2d/tiled/input.h"

#include <algorithm>
#include <utility>

#include "kernels/core/tiles.h"
#include "kernels/int8/conv2d/core/output_constants.h"

namespace fuselage::int8::conv2d::tiled {
namespace {

using kernels::Blocking;
using kernels::kTileRowBytes;
using kernels::kTileRows;
using kernels::PlacedTensor;
using kernels::Placement;

constexpr int kMaxHalo = 32, kMaxStride = 64;

// The input rows or columns that an axis of the convolution reads, padding included.
struct Interval {
  int64_t first, last;
};
struct Window {
  Interval y, x;
};
Window WindowOf(const Geometry& g) {
  const auto interval = [](int64_t out, int stride, int pad, int kernel, int dilation) {
    return Interval{-pad, (out - 1) * stride - pad + int64_t{kernel - 1} * dilation};
  };
  return {interval(g.out_height, g.stride_y, g.pad_top, g.kernel_height, g.dilation_y),
          interval(g.out_width, g.stride_x, g.pad_left, g.kernel_width, g.dilation_x)};
}

int64_t FloorDiv(int64_t value, int64_t divisor) { return value < 0 ? -CeilDiv(-value, divisor) : value / divisor; }

// The halo, in pixels or blocks, that an axis needs.
int64_t HaloFor(const Interval& read, int64_t block, int64_t size) {
  return std::max({int64_t{0}, -FloorDiv(read.first, block), FloorDiv(read.last, block) - (CeilDiv(size, block) - 1)});
}

struct Byte {
  int64_t offset;  // From an output pixel's source.
  int32_t channel;
  int64_t index;  // In `positions`.
};

// The bytes that an output pixel is made from, in memory order; empty where two of them are the same.
std::vector<Byte> BytesOf(const Geometry& g, const PlacedTensor& input) {
  std::vector<Byte> bytes;
  for (int64_t ky = 0; ky < g.kernel_height; ++ky) {
    for (int64_t kx = 0; kx < g.kernel_width; ++kx) {
      const int64_t tap = input.Offset(0, ky * g.dilation_y - g.pad_top, kx * g.dilation_x - g.pad_left);
      for (int c = 0; c < g.group_in_channels(); ++c) bytes.push_back({tap + c, c, static_cast<int64_t>(bytes.size())});
    }
  }
  std::sort(bytes.begin(), bytes.end(), [](const Byte& a, const Byte& b) { return a.offset < b.offset; });
  const auto same = [](const Byte& a, const Byte& b) { return a.offset == b.offset; };
  if (std::adjacent_find(bytes.begin(), bytes.end(), same) != bytes.end()) bytes.clear();
  return bytes;
}

// As few steps as cover all bytes. Those of the first 64 channels come first, for all taps, then the next 64: a block
// of pixels comes from the second-level cache once for all taps.
void PlanSteps(const std::vector<Byte>& bytes, TiledInput* tiled) {
  struct Step {
    int32_t channels;  // The first one's 64.
    int64_t offset;
    size_t begin, end;  // Its bytes.
  };
  std::vector<Step> steps;
  // The last step does not read beyond the last byte where there are bytes before it instead.
  const int64_t last_offset = std::max(bytes.front().offset, bytes.back().offset + 1 - kTileRowBytes);
  for (size_t i = 0; i < bytes.size();) {
    int64_t offset = std::min(bytes[i].offset, last_offset);
    size_t end = i;
    while (end < bytes.size() && bytes[end].offset < offset + kTileRowBytes) ++end;
    // Where there is room before its bytes, a step begins with 16 bytes: fewer of its rows lie on two cache lines.
    const int64_t aligned = FloorDiv(offset, 16) * 16;
    if (bytes[end - 1].offset < aligned + kTileRowBytes) offset = aligned;
    steps.push_back({bytes[i].channel / kTileRowBytes, offset, i, end});
    i = end;
  }
  std::stable_sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.channels < b.channels; });
  tiled->positions.resize(bytes.size());
  for (const Step& step : steps) {
    const int64_t first = tiled->steps() * kTileRowBytes;
    for (size_t i = step.begin; i < step.end; ++i) {
      tiled->positions[bytes[i].index] = first + bytes[i].offset - step.offset;
    }
    tiled->offsets.push_back(step.offset);
  }
}

// Sixteen pixels from each first one that no tile has yet. `wrap`: the pixels from row to row, 0: tiles end with
// theirs.
void PlanTiles(const Geometry& g, int64_t row_bytes, int64_t wrap, TiledInput* tiled) {
  for (int64_t y = 0, x = 0; y < g.out_height;) {
    TiledInput::Tile tile;
    tile.source = y * row_bytes + x * tiled->pixel_bytes;
    tile.first_pixel = static_cast<int>(tiled->pixels.size());
    int64_t last_y = y, last_x = x;
    for (int row = 0; row < kTileRows; ++row) {
      const int64_t at_y = wrap == 0 ? y : y + (x + row) / wrap, at_x = wrap == 0 ? x + row : (x + row) % wrap;
      if (at_y >= g.out_height || at_x >= g.out_width) continue;
      tiled->pixels.push_back({row, static_cast<int>(at_y), static_cast<int>(at_x)});
      last_y = at_y, last_x = at_x;
    }
    tile.pixels = static_cast<int>(tiled->pixels.size()) - tile.first_pixel;
    tiled->tiles.push_back(tile);
    const bool row_ends = last_x + 1 == g.out_width;
    y = row_ends ? last_y + 1 : last_y;
    x = row_ends ? 0 : last_x + 1;
  }
}

// Tiles that would read beyond the memory begin earlier. False: that does not help.
bool KeepInside(const Geometry& g, const PlacedTensor& input, int64_t memory, TiledInput* tiled) {
  const auto [least, most] = std::minmax_element(tiled->offsets.begin(), tiled->offsets.end());
  if (*least < 0) return false;
  const int64_t last_group = int64_t{g.in_channels} - g.group_in_channels();
  const int64_t end = memory - (input.batch - 1) * input.image_bytes - last_group - *most - kTileRowBytes;
  for (TiledInput::Tile& tile : tiled->tiles) {
    const int64_t beyond = tile.source + (kTileRows - 1) * tiled->pixel_bytes - end;
    if (beyond <= 0) continue;
    const int64_t rows = CeilDiv(beyond, tiled->pixel_bytes);
    tile.source -= rows * tiled->pixel_bytes;
    const int last = tile.first_pixel + tile.pixels - 1;
    if (tile.source < 0 || tiled->pixels[last].row + rows >= kTileRows) return false;
    for (int i = tile.first_pixel; i <= last; ++i) tiled->pixels[i].row += static_cast<int>(rows);
  }
  return true;
}

bool HasHalo(const Geometry& g, const PlacedTensor& input, int block) {
  const Window window = WindowOf(g);
  return HaloFor(window.y, block, g.in_height) <= input.placement.halo &&
         HaloFor(window.x, block, g.in_width) <= input.placement.halo;
}

}  // namespace

std::optional<TiledInput> ReadInTiles(const Geometry& g, const PlacedTensor& input, int64_t memory, bool rows_apart) {
  const int block = input.placement.blocking == Blocking::kNone ? 1 : 2;
  if (g.stride_y % block != 0 || g.stride_x % block != 0 || !HasHalo(g, input, block)) return std::nullopt;
  const std::vector<Byte> bytes = BytesOf(g, input);
  if (bytes.empty()) return std::nullopt;
  TiledInput tiled;
  PlanSteps(bytes, &tiled);
  tiled.pixel_bytes = g.stride_x / block * input.pixel_bytes;
  const int64_t row_bytes = g.stride_y / block * input.row_bytes;
  const bool wraps = !rows_apart && row_bytes % tiled.pixel_bytes == 0 && row_bytes / tiled.pixel_bytes >= g.out_width;
  PlanTiles(g, row_bytes, wraps ? row_bytes / tiled.pixel_bytes : 0, &tiled);
  if (!KeepInside(g, input, memory, &tiled)) return std::nullopt;
  return tiled;
}

std::optional<Placement> PlacementForTiles(const Geometry& g) {
  const Shape shape = {g.batch, g.in_channels, g.in_height, g.in_width};
  Placement placement;
  const bool halves = g.stride_y % 2 == 0 && g.stride_x % 2 == 0;
  const int block = halves ? 2 : 1;
  const Window window = WindowOf(g);
  // A kernel wider than a row with its halo would read the same byte for two taps.
  const int64_t taps =
      FloorDiv(int64_t{g.kernel_width - 1} * g.dilation_x - g.pad_left, block) - FloorDiv(-g.pad_left, block) + 1;
  const int64_t halo = std::max(
      {HaloFor(window.y, block, g.in_height), HaloFor(window.x, block, g.in_width), taps - CeilDiv(g.in_width, block)});
  if (halo > kMaxHalo || g.stride_x > kMaxStride) return std::nullopt;
  const PlacedTensor dense(shape, placement);
  if (!halves && halo == 0 && ReadInTiles(g, dense, dense.bytes)) return placement;
  placement.halo = static_cast<int>(halo);
  int pixel_bytes = g.in_channels;
  if (halves) {
    placement.blocking = Blocking::kPhasePlanes;
    placement.halo = std::max(1, placement.halo);  // A 1x1 shortcut prefers what the 3x3 beside it does.
  }
  if (halves && 4 * g.in_channels <= kTileRowBytes) {
    placement.blocking = Blocking::kSpaceToDepth;
    pixel_bytes = static_cast<int>(RoundUp(4 * g.in_channels, 16));
  }
  // An odd number of cache lines: at a multiple of 512 bytes the pixels of a block meet in an eighth of the first-level
  // cache's sets.
  if (pixel_bytes % 512 == 0) pixel_bytes += kTileRowBytes;
  if (pixel_bytes != g.in_channels || placement.dense()) placement.pixel_bytes = pixel_bytes;
  return placement;
}

}  // namespace fuselage::int8::conv2d::tiled
