#include "kernels/int8/conv2d/cuda/plan.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/int8/conv2d/cuda/kernels.h"
#include "kernels/int8/conv2d/cuda/stem_plan.h"

namespace fuselage::int8::conv2d::cuda {
namespace {

using ::fuselage::cuda::DeviceProperties;
using ::fuselage::cuda::MakeDivider;

constexpr int64_t kIntMax = std::numeric_limits<int32_t>::max();
constexpr int kSharedBytesWithoutOptIn = 48 << 10;
constexpr int kMaxGridYz = 65535;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t RoundUp(int64_t a, int64_t b) { return CeilDiv(a, b) * b; }

// Pixel coordinates, outside of the image too, stay far from the ends of int.
bool SmallCoordinates(const Geometry& g) {
  constexpr int64_t kLarge = 1 << 28;
  const auto last = [](int64_t out, int64_t stride, int64_t kernel, int64_t dilation) {
    return (out + StemLayout::kTileWidth) * stride + (kernel + StemTaps::kCount) * dilation;
  };
  return last(g.out_height, g.stride_y, g.kernel_height, g.dilation_y) < kLarge &&
         last(g.out_width, g.stride_x, g.kernel_width, g.dilation_x) < kLarge && g.pad_top < kLarge &&
         g.pad_left < kLarge;
}

// Bytes of the input that a Gemm fetches at once.
int PieceOf(const Geometry& g) { return g.in_channels % 16 == 0 ? 16 : g.in_channels % 8 == 0 ? 8 : 1; }

bool IsDiagonal(const Geometry& g) {
  return g.groups > 1 && g.in_channels == g.out_channels && 32 % g.group_in_channels() == 0 && PieceOf(g) == 16;
}

// The input channels of a tap, and which of them each tile has.
struct TapWindow {
  int64_t channels;
  ChannelWindow window;
};
TapWindow TapWindowOf(const Geometry& g) {
  TapWindow tap = {RoundUp(g.in_channels, 16), {MakeDivider(1), 0, 1, 0}};
  if (g.groups == 1) return tap;
  ChannelWindow& window = tap.window;
  window = {MakeDivider(g.group_out_channels()), g.group_in_channels(), PieceOf(g), g.in_channels};
  int most = 0;
  for (int first = 0; first < g.out_channels; first += kGroupColumns) {
    const int last = std::min(first + kGroupColumns, g.out_channels) - 1;
    const int end = (last / g.group_out_channels() + 1) * g.group_in_channels();
    most = std::max(most, end - window.First(first));
  }
  tap.channels = IsDiagonal(g) ? kStep : RoundUp(most, 16);
  // Where nobody asks whether a pixel has so many.
  if (PieceOf(g) == 16 && !IsDiagonal(g)) window.last = g.in_channels - static_cast<int>(tap.channels);
  return tap;
}

int64_t InnerBytes(const Geometry& g) { return TapWindowOf(g).channels * g.kernel_height * g.kernel_width; }

std::vector<Piece> PiecesOf(const Params& p, int steps) {
  std::vector<Piece> pieces;
  for (int inner = 0; inner < steps * kStep; inner += 16) {
    const int tap = inner / p.tap_channels;
    Piece piece = {tap / p.kernel_width * p.dilation_y, tap % p.kernel_width * p.dilation_x, inner % p.tap_channels, 0};
    piece.distance = (static_cast<uint32_t>(piece.tap_y) * p.in_width + piece.tap_x) * p.in_channels + piece.channel;
    pieces.push_back(piece);
  }
  return pieces;
}

std::vector<uint32_t> TapsInsideOf(const Params& p) {
  std::vector<uint32_t> taps;
  const auto add = [&](int out, int in, int kernel, int pad, int dilation, int bits) {
    for (int i = 0; i < out; ++i) {
      uint32_t inside = 0;
      for (int tap = 0; tap < kernel; ++tap) {
        const int at = i - pad + tap * dilation;
        if (at >= 0 && at < in) inside |= uint32_t{1} << tap * bits;
      }
      taps.push_back(inside);
    }
  };
  add(p.out_width, p.in_width, p.kernel_width, p.pad_left, p.dilation_x, 1);
  add(p.out_height, p.in_height, p.kernel_height, p.pad_top, p.dilation_y, p.kernel_width);
  return taps;
}

Params ParamsOf(const Problem& problem) {
  const Geometry& g = problem.geometry;
  const kernels::Epilogue& e = problem.epilogue;
  Params p = {};
  p.rows = g.batch * g.out_height * g.out_width;
  p.in_channels = g.in_channels, p.in_height = g.in_height, p.in_width = g.in_width;
  p.out_channels = g.out_channels, p.out_height = g.out_height, p.out_width = g.out_width;
  p.by_out_width = MakeDivider(g.out_width), p.by_out_height = MakeDivider(g.out_height);
  p.kernel_height = g.kernel_height, p.kernel_width = g.kernel_width;
  p.stride_y = g.stride_y, p.stride_x = g.stride_x;
  p.pad_top = g.pad_top, p.pad_left = g.pad_left;
  p.dilation_y = g.dilation_y, p.dilation_x = g.dilation_x;
  p.groups = g.groups;
  p.splits = 1;
  p.padding = static_cast<uint8_t>(problem.input_zero_point);
  p.float_relu = problem.relu;
  p.codes = {e.zero_point, e.range.lo, e.range.hi};
  p.output_flip = problem.output_type == DType::kI8 ? 0x80 : 0;
  p.residual_flip = problem.residual_type == DType::kI8 ? 0x80 : 0;
  p.residual_zero_point = ::fuselage::cuda::kTwoTo23 + static_cast<float>(e.residual_zero_point + p.residual_flip);
  p.residual_multiplier = e.residual_multiplier;
  p.activated = e.function.has_value();
  if (p.activated) p.function = *e.function;
  p.function_multiplier = e.function_multiplier;
  return p;
}

bool GemmRuns(const Problem& problem) {
  const Geometry& g = problem.geometry;
  // Dividers take what they divide times the divisor below 2^31.
  return (g.groups == 1 || int64_t{g.out_channels} * g.group_out_channels() <= kIntMax / 2) && SmallCoordinates(g) &&
         InnerBytes(g) < kIntMax / 2 && int64_t{g.batch} * g.in_height * g.in_width * g.in_channels <= kIntMax &&
         int64_t{g.batch} * g.out_height * g.out_width <= kIntMax / 2 &&
         CeilDiv(g.batch * g.out_height * g.out_width, kTiles[kLeastTile].rows) *
                 CeilDiv(g.out_channels, kTiles[kLeastTile].columns) <=
             kIntMax;
}

// Tap (0, 0) is as far before its output pixel everywhere, and a patch fits shared memory. A slice's patch arrives
// within that of the one before, but for the two steps that are under way.
bool HaloRuns(const Geometry& g, int64_t around) {
  const int64_t taps = int64_t{g.kernel_height} * g.kernel_width;
  return g.stride_y == 1 && g.stride_x == 1 && g.out_height == g.in_height && g.out_width == g.in_width &&
         g.in_channels % 16 == 0 && taps > 2 && taps <= kMostTaps &&
         around + kTiles[kHaloTile].rows <= kMostPatchPixels;
}

bool StemRuns(const Problem& problem, const Params& params) {
  const Geometry& g = problem.geometry;
  if (params.activated || g.groups > 1 || g.in_channels > 4 || g.kernel_width > StemTaps::kCount ||
      g.kernel_height > 256 || !SmallCoordinates(g)) {
    return false;
  }
  const StemLayout layout = StemLayoutOf(problem);
  return layout.bytes() <= kSharedBytesWithoutOptIn &&
         int64_t{g.in_height} * g.in_width * g.in_channels <= kIntMax - 3 && layout.down <= kMaxGridYz &&
         g.batch * CeilDiv(g.out_channels, StemLayout::kTileChannels) <= kMaxGridYz / 2;  // As StemLayout divides it.
}

int DepthwisePiece(const Geometry& g) { return g.in_channels % 16 == 0 ? 16 : 4; }

bool DepthwiseRuns(const Problem& problem) {
  const Geometry& g = problem.geometry;
  return g.groups == g.in_channels && g.groups == g.out_channels && g.groups % 4 == 0 && SmallCoordinates(g) &&
         int64_t{g.in_width} * g.in_channels <= kIntMax &&
         int64_t{g.batch} * g.out_height * g.out_width * (g.out_channels / DepthwisePiece(g)) <= kIntMax / 2;
}

// By instructions for an output, a diagonal halo on tensor cores has two thirds of a Depthwise's, as far as tiles are
// full.
bool HaloBeatsDepthwise(const Problem& problem, const DeviceProperties& device) {
  const Geometry& g = problem.geometry;
  return IsDiagonal(g) && GemmRuns(problem) && 4 * g.out_channels >= 3 * RoundUp(g.out_channels, kGroupColumns) &&
         kTiles[ChooseTiling(GemmSizeOf(g), device, TunedTilings()).tile].halo;
}

bool SetPool(const kernels::PoolWindow& window, Params& p) {
  for (const auto& axis : window.axes) {
    constexpr int64_t kLarge = 1 << 28;
    if (axis.out * axis.stride + axis.kernel * axis.dilation + axis.pad_begin >= kLarge) return false;
  }
  const auto &y = window.axes[0], &x = window.axes[1];
  p.pool = {static_cast<int>(y.out),       static_cast<int>(x.out),       static_cast<int>(y.kernel),
            static_cast<int>(x.kernel),    static_cast<int>(y.stride),    static_cast<int>(x.stride),
            static_cast<int>(y.pad_begin), static_cast<int>(x.pad_begin), static_cast<int>(y.dilation),
            static_cast<int>(x.dilation)};
  return true;
}

}  // namespace

GemmSize GemmSizeOf(const Geometry& g) {
  GemmSize size = {g.batch * g.out_height * g.out_width, g.out_channels,
                   static_cast<int>(CeilDiv(InnerBytes(g), kStep))};
  size.grouped = g.groups > 1;
  size.diagonal = IsDiagonal(g);
  const int64_t around =
      int64_t{g.kernel_height - 1} * g.dilation_y * g.in_width + int64_t{g.kernel_width - 1} * g.dilation_x;
  if (!HaloRuns(g, around)) return size;
  size.taps = g.kernel_height * g.kernel_width;
  size.slices = static_cast<int>(CeilDiv(TapWindowOf(g).channels, kStep));
  size.around = static_cast<int>(around);
  return size;
}

template <typename T>
int64_t Plan::Append(const std::vector<T>& values) {
  const int64_t offset = RoundUp(constants_.size(), kAlignment);
  constants_.resize(offset + values.size() * sizeof(T));
  std::memcpy(constants_.data() + offset, values.data(), values.size() * sizeof(T));
  return offset;
}

void Plan::AddConstants(const Problem& problem, const std::vector<int8_t>& weight) {
  const kernels::Epilogue& e = problem.epilogue;
  AddConstants(problem, weight, problem.output_type == DType::kF32 ? e.offset : e.bias);
}

void Plan::AddConstants(const Problem& problem, const std::vector<int8_t>& weight, const std::vector<int32_t>& bias) {
  const kernels::Epilogue& e = problem.epilogue;
  const bool is_float = problem.output_type == DType::kF32;
  const auto padded = [&](auto values) {
    values.resize(params_.padded_channels);
    return values;
  };
  offsets_.weight = Append(weight);
  offsets_.bias = Append(padded(bias));
  offsets_.multiplier = Append(padded(is_float ? e.float_scale : e.multiplier));
  if (is_float) offsets_.float_bias = Append(padded(e.float_bias));
}

std::vector<int8_t> Plan::GemmWeight(const Problem& problem, const TileSize& tile) const {
  const Geometry& g = problem.geometry;
  const Params& p = params_;
  std::vector<int8_t> weight(int64_t{p.steps} * p.padded_channels * kStep);
  const int taps = g.kernel_height * g.kernel_width, slice_taps = tile.halo ? p.steps / p.slices : 0;
  const int8_t* from = problem.weight;
  for (int64_t oc = 0; oc < g.out_channels; ++oc) {
    const int group = static_cast<int>(oc) / g.group_out_channels();
    const int first =
        group * g.group_in_channels() - p.window.First(static_cast<int>(oc) / tile.columns * tile.columns);
    for (int64_t ic = first; ic < first + g.group_in_channels(); ++ic) {
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t inner =
            tile.halo ? (ic / kStep * slice_taps + tap) * kStep + ic % kStep : tap * p.tap_channels + ic;
        int64_t place = inner % kStep;
        if (tile.hopper) place ^= (oc >> 1 & 3) << 4;  // As Steps::Place has it.
        weight[(inner / kStep * p.padded_channels + oc) * kStep + place] = *from++;
      }
    }
  }
  return weight;
}

void Plan::PlanGemm(const Problem& problem, const DeviceProperties& device, const PlanOptions& options) {
  const Geometry& g = problem.geometry;
  Params& p = params_;
  KernelId id;
  id.family = Family::kGemm;
  id.is_signed = problem.input_type == DType::kI8;
  id.diagonal = IsDiagonal(g);
  id.piece = PieceOf(g);
  const GemmSize size = GemmSizeOf(g);
  Tiling tiling = {kUnalignedTile, 1};
  if (id.piece == 16) tiling = options.tiling ? *options.tiling : ChooseTiling(size, device, TunedTilings());
  id.tile = tiling.tile;
  const TileSize& tile = kTiles[tiling.tile];
  const TapWindow tap_window = TapWindowOf(g);
  p.window = tap_window.window;
  p.tap_channels = static_cast<int>(tap_window.channels);
  p.steps = tile.halo ? HaloTaps(size, tiling.tile) * size.slices : size.steps;
  p.slices = size.slices;
  p.patch_pixels = tile.rows + size.around;
  p.patch_bytes = GemmPatchBytes(id, p.patch_pixels);
  using HopperHalo = HaloAt<kFirstHopperTile, uint8_t>;
  p.boxes = HopperHalo::Boxes(p.patch_pixels);
  p.input_pixels.rows = g.batch * g.in_height * g.in_width;
  p.input_pixels.columns = g.in_channels;
  p.input_pixels.box_rows = HopperHalo::BoxRows(p.patch_pixels);
  p.patch_part = static_cast<int>(RoundUp(CeilDiv(p.patch_pixels, std::max(1, size.taps - 2)), 8));
  p.padded_channels = static_cast<int>(RoundUp(g.out_channels, tile.columns));
  p.steps_per_split = static_cast<int>(CeilDiv(p.steps, tiling.splits));
  p.splits = NonEmptySplits(p.steps, tiling.splits);
  while (tiling.clusters && p.splits << p.share_bits < tile.rows * tile.columns / 4) ++p.share_bits;
  const int column_tiles = p.padded_channels / tile.columns;
  const auto tiles = static_cast<int>(CeilDiv(p.rows, tile.rows) * column_tiles);
  p.blocks = tiles;
  // Sums that become floats lie where the weights of another tile would be.
  if (tile.halo && tile.hopper && problem.output_type != DType::kF32) {
    const int at_once = BlocksAtOnce(size, tiling, device) * device.multiprocessors / column_tiles * column_tiles;
    if (at_once > 0) p.blocks = std::min(tiles, at_once);
  }

  AddConstants(problem, GemmWeight(problem, tile));
  if (tile.halo) {
    offsets_.taps_inside = Append(TapsInsideOf(p));
  } else {
    offsets_.pieces = Append(PiecesOf(p, p.steps + kMostShortSteps));
  }

  const int shared_bytes = GemmSharedBytes(id, problem.has_residual && !p.activated, p.patch_pixels, p.steps_per_split);
  launches_.push_back({id, {p.blocks, 1, p.splits}, shared_bytes, p});
  if (p.splits > 1 && !tiling.clusters) {
    partial_bytes_ = int64_t{4} * tiles * p.splits * tile.rows * tile.columns;
    tickets_ = tiles;
  }
  if (!p.activated || tile.teams > 1) return;
  const int64_t sums = int64_t{p.rows} * p.padded_channels;
  sums_bytes_ = RoundUp(4 * sums, kAlignment);
  KernelId finish;
  finish.family = Family::kFinish;
  launches_.push_back({finish, {static_cast<int>(CeilDiv(sums, Finish::kPerBlock)), 1, 1}, 0, p});
}

void Plan::PlanStem(const Problem& problem) {
  const Geometry& g = problem.geometry;
  Params& p = params_;
  p.padded_channels = static_cast<int>(RoundUp(g.out_channels, StemLayout::kTileChannels));
  p.stem = StemLayoutOf(problem);
  AddConstants(problem, StemWeight(problem));
  KernelId id;
  id.family = Family::kStem;
  id.is_signed = problem.input_type == DType::kI8;
  // The results take the place of weights and pixels.
  const int64_t shared_bytes = std::max<int64_t>(p.stem.bytes(), Stem<uint8_t>::Tile::kSumsEnd);
  launches_.push_back({id,
                       {p.stem.across, p.stem.down, g.batch * (p.padded_channels / StemLayout::kTileChannels)},
                       static_cast<int>(shared_bytes),
                       p});
}

void Plan::PlanPooledStem(const Problem& problem, const PooledStemLayout& layout) {
  Params& p = params_;
  p.padded_channels = layout.padded_channels();
  p.pooled_stem = layout;
  AddConstants(problem, PooledStemWeight(problem, layout), PooledStemBias(problem, layout));
  KernelId id;
  id.family = Family::kPooledStem;
  id.tap_rows = TapRowsOf(problem.geometry);
  id.stride = problem.geometry.stride_y;
  launches_.push_back({id,
                       {layout.across, layout.down, problem.geometry.batch * layout.channel_blocks},
                       static_cast<int>(layout.bytes()),
                       p});
}

void Plan::PlanDepthwise(const Problem& problem) {
  const Geometry& g = problem.geometry;
  Params& p = params_;
  KernelId id;
  id.family = Family::kDepthwise;
  id.is_signed = problem.input_type == DType::kI8;
  id.piece = DepthwisePiece(g);
  p.padded_channels = g.out_channels;
  p.by_pixel_threads = MakeDivider(g.out_channels / id.piece);
  std::vector<int8_t> weight(RoundUp(g.kernel_width, 4) * g.kernel_height * g.out_channels);
  const int8_t* from = problem.weight;
  for (int64_t channel = 0; channel < g.out_channels; ++channel) {
    for (int64_t y = 0; y < g.kernel_height; ++y) {
      for (int64_t x = 0; x < g.kernel_width; ++x) {
        weight[((x / 4 * g.kernel_height + y) * g.out_channels + channel) * 4 + x % 4] = *from++;
      }
    }
  }
  AddConstants(problem, weight);
  const int64_t threads = int64_t{p.rows} * (p.out_channels / id.piece);
  const int per_block = Depthwise<uint8_t, 4>::kWarps * kWarpSize;
  launches_.push_back({id, {static_cast<int>(CeilDiv(threads, per_block)), 1, 1}, 0, p});
}

void Plan::PlanDirect(const Problem& problem) {
  const Geometry& g = problem.geometry;
  Params& p = params_;
  p.padded_channels = g.out_channels;
  const int taps = g.kernel_height * g.kernel_width, channels = g.group_in_channels();
  std::vector<int8_t> weight(int64_t{g.out_channels} * channels * taps);
  for (int64_t oc = 0; oc < g.out_channels; ++oc) {
    for (int64_t ic = 0; ic < channels; ++ic) {
      for (int64_t tap = 0; tap < taps; ++tap) {
        weight[(oc * taps + tap) * channels + ic] = problem.weight[(oc * channels + ic) * taps + tap];
      }
    }
  }
  AddConstants(problem, weight);
  KernelId id;
  id.is_signed = problem.input_type == DType::kI8;
  const int64_t outputs = int64_t{p.rows} * p.out_channels;
  launches_.push_back({id, {static_cast<int>(CeilDiv(outputs, Direct<uint8_t>::kPerBlock)), 1, 1}, 0, p});
}

void Plan::PlanPool() {
  const Params& p = params_;
  codes_bytes_ = RoundUp(int64_t{p.rows} * p.out_channels, kAlignment);
  const int64_t batch = p.rows / p.out_height / p.out_width;
  KernelId id;
  id.family = Family::kPool;
  const int64_t outputs = batch * p.pool.out_height * p.pool.out_width * p.out_channels;
  launches_.push_back({id, {static_cast<int>(CeilDiv(outputs, Pool::kPerBlock)), 1, 1}, 0, p});
}

absl::StatusOr<Plan> Plan::Make(const Problem& problem, const kernels::PoolWindow* pool, const DeviceProperties& device,
                                const PlanOptions& options) {
  const Geometry& g = problem.geometry;
  const double rows = 1.0 * g.batch * g.out_height * g.out_width;
  if (rows > kIntMax || rows * g.out_channels / Direct<uint8_t>::kPerBlock > kIntMax) {
    return absl::UnimplementedError("int8.conv2d: more than 2^31 output pixels");
  }
  Plan plan;
  Params& params = plan.params_;
  params = ParamsOf(problem);
  if (pool != nullptr) {
    if (problem.has_residual || problem.output_type == DType::kF32) {
      return absl::UnimplementedError("a max pool of a convolution with a residual or a float output");
    }
    if (!SetPool(*pool, params)) return absl::UnimplementedError("a max pool of more than 2^28 pixels in a line");
  }
  std::optional<PooledStemLayout> pooled_stem;
  if (pool != nullptr && SmallCoordinates(g)) {
    pooled_stem = PooledStemLayoutOf(problem, params, device, options.segment);
  }
  const bool stem = StemRuns(problem, params);
  const bool depthwise = DepthwiseRuns(problem) && !HaloBeatsDepthwise(problem, device);
  const Family family = options.family      ? *options.family
                        : pooled_stem       ? Family::kPooledStem
                        : stem              ? Family::kStem
                        : depthwise         ? Family::kDepthwise
                        : GemmRuns(problem) ? Family::kGemm
                                            : Family::kDirect;
  const auto runs = [&](const Tiling& tiling) {
    if (tiling.clusters || kTiles[tiling.tile].teams > 1) return TilingRuns(GemmSizeOf(g), tiling, device);
    return TileRuns(GemmSizeOf(g), tiling.tile, device) && (!kTiles[tiling.tile].halo || tiling.splits == 1);
  };
  if ((family == Family::kPooledStem && !pooled_stem) || (family == Family::kStem && !stem) ||
      (family == Family::kGemm && !GemmRuns(problem)) || (family == Family::kDepthwise && !DepthwiseRuns(problem)) ||
      (family == Family::kGemm && options.tiling && !runs(*options.tiling))) {
    return absl::FailedPreconditionError("int8.conv2d: the kernel asked for does not run this");
  }
  switch (family) {
    case Family::kGemm: plan.PlanGemm(problem, device, options); break;
    case Family::kStem: plan.PlanStem(problem); break;
    case Family::kPooledStem: plan.PlanPooledStem(problem, *pooled_stem); break;
    case Family::kDepthwise: plan.PlanDepthwise(problem); break;
    default: plan.PlanDirect(problem);
  }
  if (pool != nullptr && family != Family::kPooledStem) plan.PlanPool();
  return plan;
}

std::string Plan::name() const {
  const KernelId& id = launches_[0].id;
  std::string name;
  switch (id.family) {
    case Family::kStem: name = "cuda stem"; break;
    case Family::kPooledStem:
      name = absl::StrCat("cuda pooled stem, ", params_.pooled_stem.rows, " rows a segment");
      break;
    case Family::kGemm:
      name = absl::StrCat("cuda ", IsForHopper(id) ? "hopper " : "", id.diagonal ? "diagonal " : "",
                          kTiles[id.tile].halo ? "halo " : "gemm ", kTiles[id.tile].rows, "x", kTiles[id.tile].columns,
                          kTiles[id.tile].teams > 1 ? " teams" : "");
      break;
    case Family::kDepthwise: name = "cuda depthwise"; break;
    default: name = "cuda direct";
  }
  if (id.piece != 16) absl::StrAppend(&name, " by ", id.piece, " bytes");
  if (params_.splits > 1) {
    absl::StrAppend(&name, launches_[0].clusters() ? " cluster " : " split ", params_.splits);
  }
  if (sums_bytes_ > 0) name += ", function";
  if (codes_bytes_ > 0) name += ", pool";
  return name;
}

Launch Plan::Bind(const Launch& launch, const Arguments& arguments, const Memory& memory) const {
  const auto* base = static_cast<const uint8_t*>(memory.constants);
  auto* codes = static_cast<uint8_t*>(memory.scratch);
  const bool is_pool = launch.id.family == Family::kPool;
  Launch bound = launch;
  Params& p = bound.params;
  p.input = is_pool ? codes : static_cast<const uint8_t*>(arguments.input);
  p.input_pixels.data = p.input;
  p.residual = static_cast<const uint8_t*>(arguments.residual);
  p.output = is_pool || codes_bytes_ == 0 ? arguments.output : codes;
  p.sums = sums_bytes_ > 0 ? reinterpret_cast<int32_t*>(codes + codes_bytes_) : nullptr;
  p.partial = reinterpret_cast<int32_t*>(codes + codes_bytes_ + sums_bytes_);
  p.tickets = memory.tickets;
  p.weight = reinterpret_cast<const int8_t*>(base + offsets_.weight);
  p.pieces = reinterpret_cast<const Piece*>(base + offsets_.pieces);
  p.taps_inside = reinterpret_cast<const uint32_t*>(base + offsets_.taps_inside);
  p.bias = reinterpret_cast<const int32_t*>(base + offsets_.bias);
  p.multiplier = reinterpret_cast<const float*>(base + offsets_.multiplier);
  p.float_bias = offsets_.float_bias < 0 ? nullptr : reinterpret_cast<const float*>(base + offsets_.float_bias);
  return bound;
}

}  // namespace fuselage::int8::conv2d::cuda
