#include "kernels/int8/conv2d/cuda/plan.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/int8/conv2d/cuda/kernels.h"

namespace fuselage::int8::conv2d::cuda {
namespace {

using ::fuselage::cuda::DeviceProperties;

constexpr int64_t kIntMax = std::numeric_limits<int32_t>::max();
constexpr int kSharedBytesWithoutOptIn = 48 << 10;
constexpr int kMaxGridY = 65535;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t RoundUp(int64_t a, int64_t b) { return CeilDiv(a, b) * b; }

// Pixel coordinates, outside of the image too, stay far from the ends of int.
bool SmallCoordinates(const Geometry& g) {
  constexpr int64_t kLarge = 1 << 28;
  const auto last = [](int64_t out, int64_t stride, int64_t kernel, int64_t dilation) {
    return (out + StemLayout::kTileWidth) * stride + (kernel + StemLayout::kTaps) * dilation;
  };
  return last(g.out_height, g.stride_y, g.kernel_height, g.dilation_y) < kLarge &&
         last(g.out_width, g.stride_x, g.kernel_width, g.dilation_x) < kLarge && g.pad_top < kLarge &&
         g.pad_left < kLarge;
}

int64_t TapChannels(const Geometry& g) { return RoundUp(g.in_channels, 16); }
int64_t InnerBytes(const Geometry& g) { return TapChannels(g) * g.kernel_height * g.kernel_width; }

Params ParamsOf(const Problem& problem) {
  const Geometry& g = problem.geometry;
  const kernels::Epilogue& e = *problem.epilogue;
  Params p = {};
  p.rows = g.batch * g.out_height * g.out_width;
  p.in_channels = g.in_channels, p.in_height = g.in_height, p.in_width = g.in_width;
  p.out_channels = g.out_channels, p.out_height = g.out_height, p.out_width = g.out_width;
  p.kernel_height = g.kernel_height, p.kernel_width = g.kernel_width;
  p.stride_y = g.stride_y, p.stride_x = g.stride_x;
  p.pad_top = g.pad_top, p.pad_left = g.pad_left;
  p.dilation_y = g.dilation_y, p.dilation_x = g.dilation_x;
  p.groups = g.groups;
  p.splits = 1;
  p.float_relu = problem.relu;
  const int32_t output_shift = problem.output_type == DType::kI8 ? 128 : 0;
  p.codes = {e.zero_point + output_shift, e.range.lo + output_shift, e.range.hi + output_shift};
  p.output_flip = static_cast<uint8_t>(output_shift);
  const int32_t residual_shift = problem.residual_type == DType::kI8 ? 128 : 0;
  p.residual_flip = static_cast<uint8_t>(residual_shift);
  p.residual_zero_point = e.residual_zero_point + residual_shift;
  p.residual_multiplier = e.residual_multiplier;
  return p;
}

bool GemmRuns(const Problem& problem) {
  const Geometry& g = problem.geometry;
  return g.groups == 1 && SmallCoordinates(g) && InnerBytes(g) < kIntMax / 2 &&
         int64_t{g.batch} * g.in_height * g.in_width * g.in_channels <= kIntMax &&
         CeilDiv(g.out_channels, kTiles[kTileCount - 1].columns) <= kMaxGridY;
}

bool StemRuns(const Problem& problem) {
  const Geometry& g = problem.geometry;
  return g.groups == 1 && g.in_channels <= 4 && g.kernel_width <= StemLayout::kTaps && g.kernel_height <= 256 &&
         SmallCoordinates(g) && StemLayout(ParamsOf(problem)).bytes() <= kSharedBytesWithoutOptIn &&
         CeilDiv(g.out_channels, StemLayout::kTileChannels) <= kMaxGridY;
}

}  // namespace

template <typename T>
int64_t Plan::Append(const std::vector<T>& values) {
  const int64_t offset = RoundUp(constants_.size(), kAlignment);
  constants_.resize(offset + values.size() * sizeof(T));
  std::memcpy(constants_.data() + offset, values.data(), values.size() * sizeof(T));
  return offset;
}

void Plan::AddConstants(const Problem& problem, const std::vector<int8_t>& weight) {
  const kernels::Epilogue& e = *problem.epilogue;
  const bool is_float = problem.output_type == DType::kF32;
  const auto padded = [&](auto values) {
    values.resize(params_.padded_channels);
    return values;
  };
  offsets_.weight = Append(weight);
  offsets_.padding = Append(std::vector<uint8_t>(16, static_cast<uint8_t>(problem.input_zero_point)));
  offsets_.bias = Append(padded(is_float ? e.offset : e.bias));
  offsets_.multiplier = Append(padded(is_float ? e.float_scale : e.multiplier));
  if (is_float) offsets_.float_bias = Append(padded(e.float_bias));
}

void Plan::PlanGemm(const Problem& problem, const DeviceProperties& device, const PlanOptions& options) {
  const Geometry& g = problem.geometry;
  Params& p = params_;
  KernelId id;
  id.family = Family::kGemm;
  id.is_signed = problem.input_type == DType::kI8;
  id.aligned = g.in_channels % 16 == 0;
  p.tap_channels = static_cast<int>(TapChannels(g));
  p.steps = static_cast<int>(CeilDiv(InnerBytes(g), kStep));
  Tiling tiling = {kUnalignedTile, 1};
  if (id.aligned) {
    tiling = options.tiling ? *options.tiling : ChooseTiling({p.rows, p.out_channels, p.steps}, device, TunedTilings());
  }
  id.tile = tiling.tile;
  const TileSize& tile = kTiles[tiling.tile];
  p.padded_channels = static_cast<int>(RoundUp(g.out_channels, tile.columns));
  p.steps_per_split = static_cast<int>(CeilDiv(p.steps, tiling.splits));
  p.splits = static_cast<int>(CeilDiv(p.steps, p.steps_per_split));  // None is empty.

  std::vector<int8_t> weight(int64_t{p.steps} * p.padded_channels * kStep);
  const int taps = g.kernel_height * g.kernel_width;
  for (int64_t oc = 0; oc < g.out_channels; ++oc) {
    for (int64_t ic = 0; ic < g.in_channels; ++ic) {
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t inner = tap * p.tap_channels + ic;
        weight[(inner / kStep * p.padded_channels + oc) * kStep + inner % kStep] =
            problem.weight[(oc * g.in_channels + ic) * taps + tap];
      }
    }
  }
  AddConstants(problem, weight);

  launches_.push_back({id,
                       {static_cast<int>(CeilDiv(p.rows, tile.rows)), p.padded_channels / tile.columns, p.splits},
                       GemmSharedBytes(id),
                       p});
  if (p.splits == 1) return;
  scratch_bytes_ = int64_t{4} * p.splits * p.rows * p.padded_channels;
  KernelId reduce;
  reduce.family = Family::kReduce;
  launches_.push_back(
      {reduce, {static_cast<int>(CeilDiv(int64_t{p.rows} * p.padded_channels, Reduce::kPerBlock)), 1, 1}, 0, p});
}

void Plan::PlanStem(const Problem& problem) {
  const Geometry& g = problem.geometry;
  Params& p = params_;
  p.padded_channels = static_cast<int>(RoundUp(g.out_channels, StemLayout::kTileChannels));
  std::vector<int8_t> weight(int64_t{p.padded_channels} * g.kernel_height * StemLayout::kRowBytes);
  const int8_t* from = problem.weight;
  for (int64_t oc = 0; oc < g.out_channels; ++oc) {
    for (int64_t ic = 0; ic < g.in_channels; ++ic) {
      for (int64_t y = 0; y < g.kernel_height; ++y) {
        for (int64_t x = 0; x < g.kernel_width; ++x) {
          weight[(oc * g.kernel_height + y) * StemLayout::kRowBytes + 4 * x + ic] = *from++;
        }
      }
    }
  }
  AddConstants(problem, weight);

  const int64_t tiles = CeilDiv(g.out_width, StemLayout::kTileWidth) * CeilDiv(g.out_height, StemLayout::kTileHeight);
  KernelId id;
  id.family = Family::kStem;
  id.is_signed = problem.input_type == DType::kI8;
  // The results replace weights and pixels.
  const int64_t shared_bytes = std::max<int64_t>(StemLayout(p).bytes(), Stem<uint8_t>::Tile::kStagingBytes);
  launches_.push_back({id,
                       {static_cast<int>(g.batch * tiles), p.padded_channels / StemLayout::kTileChannels, 1},
                       static_cast<int>(shared_bytes),
                       p});
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

absl::StatusOr<Plan> Plan::Make(const Problem& problem, const DeviceProperties& device, const PlanOptions& options) {
  const Geometry& g = problem.geometry;
  const double outputs = 1.0 * g.batch * g.out_height * g.out_width * g.out_channels;
  if (outputs / g.out_channels > kIntMax || outputs / Direct<uint8_t>::kPerBlock > kIntMax) {
    return absl::UnimplementedError("int8.conv2d: more than 2^31 output pixels");
  }
  Plan plan;
  plan.params_ = ParamsOf(problem);
  const Family family = options.family      ? *options.family
                        : StemRuns(problem) ? Family::kStem
                        : GemmRuns(problem) ? Family::kGemm
                                            : Family::kDirect;
  if ((family == Family::kStem && !StemRuns(problem)) || (family == Family::kGemm && !GemmRuns(problem))) {
    return absl::FailedPreconditionError("int8.conv2d: the kernel asked for does not run this");
  }
  switch (family) {
    case Family::kGemm: plan.PlanGemm(problem, device, options); break;
    case Family::kStem: plan.PlanStem(problem); break;
    default: plan.PlanDirect(problem);
  }
  return plan;
}

std::string Plan::name() const {
  const KernelId& id = launches_[0].id;
  switch (id.family) {
    case Family::kStem: return "cuda stem";
    case Family::kGemm:
      return absl::StrCat("cuda gemm ", kTiles[id.tile].rows, "x", kTiles[id.tile].columns,
                          id.aligned ? "" : " unaligned",
                          params_.splits > 1 ? absl::StrCat(" split ", params_.splits) : "");
    default: return "cuda direct";
  }
}

Launch Plan::Bind(const Launch& launch, const Arguments& arguments, const void* constants, void* scratch) const {
  const auto* base = static_cast<const uint8_t*>(constants);
  Launch bound = launch;
  Params& p = bound.params;
  p.input = static_cast<const uint8_t*>(arguments.input);
  p.residual = static_cast<const uint8_t*>(arguments.residual);
  p.output = arguments.output;
  p.partial = scratch_bytes_ > 0 ? static_cast<int32_t*>(scratch) : nullptr;
  p.weight = reinterpret_cast<const int8_t*>(base + offsets_.weight);
  p.padding = base + offsets_.padding;
  p.bias = reinterpret_cast<const int32_t*>(base + offsets_.bias);
  p.multiplier = reinterpret_cast<const float*>(base + offsets_.multiplier);
  p.float_bias = offsets_.float_bias < 0 ? nullptr : reinterpret_cast<const float*>(base + offsets_.float_bias);
  return bound;
}

}  // namespace fuselage::int8::conv2d::cuda
