// Winograd F(4x4, 3x3) in exact integers: a quarter of the multiplications, the same bits.
//
//   Y = A^T [ (G g G^T) . (B^T d B) ] A        A. Lavin, S. Gray, "Fast Algorithms for Convolutional Neural Networks",
//                                              CVPR 2016: d a 6x6 input tile, g a 3x3 kernel, Y 4x4 outputs
//
// G has denominators up to 24, and in floating point this algorithm loses digits. Here nothing is rounded. With the
// rows of G scaled to integers, H, the rows of B^T with signs that suit it, B', and the scales moved to the other side,
// E (points 0, 1, -1, 2, -2, infinity):
//
//       | 6  0  0 |           | 4  0 -5  0  1  0 |           | 1  4  4  1  1  0 |  24
//       | 1  1  1 |           | 0  4  4 -1 -1  0 |           | 0  2 -2  1 -1  0 |  12
//   H = | 1 -1  1 |   B'^T =  | 0 -4  4  1 -1  0 |   E^T =   | 0  1  1  1  1  0 |   6
//       | 1  2  4 |           | 0 -2 -1  2  1  0 |           | 0  1 -1  2 -2  1 |   6
//       | 1 -2  4 |           | 0  2 -1 -2  1  0 |
//       | 0  0  6 |           | 0  4  0 -5  0  1 |
//
//   E^T [ (H g H^T) . (B'^T d B') ] E  =  F . Y,     F[r][c] = f[r] * f[c],  f = (24, 12, 6, 6) = 3 * (8, 4, 2, 2)
//
// Why the result is exact:
// 1. Codes enter as signed bytes, |d| <= 128. A row of B' has sum of magnitudes <= 10, so |B'^T d B'| <= 100 * 128 =
//    12800: int16, intermediate values too. A row of H has sum <= 7: |H g H^T| <= 49 * 128 = 6272: int16.
// 2. Products are summed over channels, and E applied, in 32 bits modulo 2^32, so overflow does no harm: what comes
//    out is F*Y modulo 2^32, because E, H and B' are integer and addition and multiplication are exact modulo 2^32.
// 3. F = 9 * 2^s with s <= 6. 9 has an inverse modulo 2^32: multiplying by it leaves 2^s * Y modulo 2^32.
// 4. |Y| <= 128 * sum|w|, over the channels and taps of an output. Where that is below 2^25, |2^s * Y| < 2^31 is its
//    own residue, and an arithmetic shift by s gives Y. Where it is not, it is for each of several parts of the
//    channels (PartPairs checks the actual weights), and their Y are added in 32 bits, which ProblemOf has proven to
//    suffice.
#include "kernels/int8/conv2d/winograd/winograd.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/base/tensor.h"
#include "kernels/int8/conv2d/core/operands.h"
#include "kernels/int8/conv2d/core/output_constants.h"

namespace fuselage::int8::conv2d::winograd {
namespace {

constexpr int kTile = 4;   // Outputs of a tile along each axis.
constexpr int kPatch = 6;  // Inputs.
constexpr int kPositions = kPatch * kPatch;
constexpr int kTaps = 9;
constexpr int kTileSums = kTile * kTile * kPanel;
constexpr int64_t kPairBytes = 2 * kPanel;  // Two input channels of a panel, one tap, as int8.

// Transformed weights take eight times the memory of int8. Where they fit the second-level cache, they are made once,
// and a block of tiles is small enough to stay in that cache with them. Where they do not, fetching them from beyond it
// takes longer than to transform the int8 weights anew for each block, right before they are used; then blocks are
// large, to spread that cost. Zen 3, 512 KB: F(4x4) of 256 channels at 14x14 takes 0.69 ms so, and 0.79 ms otherwise.
// With so many channels that few tiles have these bytes, more tiles are still faster, though they lie beyond the cache.
struct BlockLimits {
  int64_t least, most;  // Tiles; between these, as many as `bytes` of transformed inputs are.
  int64_t bytes;
};
constexpr BlockLimits kWeightsMadeOnce = {1, 24, 320 << 10}, kWeightsMadeLate = {64, 96, 1280 << 10};

// Pairs of input channels whose weights are transformed at a time. More of them make longer products; fewer stay in
// the first-level cache until they are used, which matters where few tiles use them.
int64_t PairsAtOnce(int64_t tiles) { return tiles <= 8 ? 48 : 128; }

// An odd number of cache lines, so that the 36 positions fall into different sets.
int64_t OddLines(int64_t bytes) { return (CeilDiv(bytes, 64) | 1) * 64; }

// The bytes of all weights, transformed.
int64_t TransformedBytes(const Geometry& g) {
  return CeilDiv(g.out_channels, kPanel) * kPositions * RoundUp(g.group_in_channels(), kPanel) / 2 * kPanelBytes;
}

// Tiles along an axis. A dilated convolution is one convolution without dilation for each phase: the pixels whose
// position leaves the same remainder.
int64_t AxisTiles(int64_t size, int64_t dilation) { return dilation * CeilDiv(CeilDiv(size, dilation), kTile); }
int64_t ImageTiles(const Geometry& g) {
  return AxisTiles(g.out_height, g.dilation_y) * AxisTiles(g.out_width, g.dilation_x);
}

// Where each tile begins.
std::vector<int64_t> TileBegins(int64_t size, int64_t dilation) {
  std::vector<int64_t> begins(AxisTiles(size, dilation));
  const int64_t of_phase = static_cast<int64_t>(begins.size()) / dilation;
  for (size_t i = 0; i < begins.size(); ++i) begins[i] = i / of_phase + i % of_phase * kTile * dilation;
  return begins;
}

// Pairs of a group's input channels.
int64_t GroupPairs(const Geometry& g) {
  return CeilDiv(g.groups == 1 ? RoundUp(g.in_channels, kPanel) : g.group_in_channels(), 2);
}

constexpr int64_t kMagnitudeBound = (int64_t{1} << 25) / 128;               // Of sum|w|: see the proof.
constexpr int64_t kSmallPairs = (kMagnitudeBound - 1) / (128 * kTaps * 2);  // Whatever their weights.

// Is each part of so many pairs small enough for the proof, in all output channels?
bool PartsAreSmall(const Problem& problem, int64_t pairs) {
  const Geometry& g = problem.geometry;
  const int64_t inner = kTaps * g.group_in_channels(), part = kTaps * 2 * pairs;
  for (int64_t oc = 0; oc < g.out_channels; ++oc) {
    for (int64_t first = 0; first < inner; first += part) {
      int64_t magnitude = 0;
      for (int64_t i = first; i < std::min(first + part, inner); ++i) {
        magnitude += std::abs(problem.weight[oc * inner + i]);
      }
      if (magnitude >= kMagnitudeBound) return false;
    }
  }
  return true;
}

// Pairs of a part, of the fewest equal parts that are small enough.
int64_t PartPairs(const Problem& problem) {
  const int64_t pairs = GroupPairs(problem.geometry);
  if (problem.max_abs_weight_sum < kMagnitudeBound) return pairs;
  int64_t parts = 2;
  while (!PartsAreSmall(problem, CeilDiv(pairs, parts))) ++parts;
  return CeilDiv(pairs, parts);
}

class Winograd : public Algorithm {
 public:
  [[gnu::cold]] Winograd(const Problem& problem, const Loops& loops)
      : geometry_(problem.geometry),
        loops_(loops),
        constants_(problem, CodeForm::kSigned),
        operands_(problem),
        channels_(RoundUp(problem.geometry.in_channels, kPanel)),
        pairs_(GroupPairs(problem.geometry)),
        part_pairs_(PartPairs(problem)),
        panels_(CeilDiv(geometry_.out_channels, kPanel)),
        group_panels_(panels_ / geometry_.groups) {
    padding_ = Tensor(DType::kU8, {channels_});
    std::memset(padding_.raw_data(), static_cast<uint8_t>(problem.input_zero_point), channels_);
    Plan(problem.threads);
    SetWeight(problem,
              absl::StrCat(transform_late_ ? "conv2d winograd late " : "conv2d winograd ", ToString(PackedType())),
              [&] { return Packed(problem.weight); });
  }

  int64_t scratch_bytes() const override { return shared_bytes_ + thread_bytes_ * threads_; }
  int64_t constant_bytes() const override { return constants_.bytes() + padding_.byte_size(); }

  void Run(const Arguments& arguments, const kernels::RunContext& context) const override {
    uint8_t* shared = static_cast<uint8_t*>(context.scratch.data);
    const auto own = [&](int thread) { return shared + shared_bytes_ + thread * thread_bytes_; };
    if (shared_bytes_ > 0) {  // Few tiles: threads share their transforms, then divide the output channels.
      context.parallel->For(static_cast<int>(tiles_), [&](int tile, int) {
        TransformInput(arguments, tile, tile + 1, reinterpret_cast<int16_t*>(shared) + tile * channels_);
      });
      context.parallel->For(PanelBlocks(), [&](int block, int thread) {
        RunPanels(arguments, 0, tiles_, FirstPanel(block), reinterpret_cast<int16_t*>(shared), own(thread));
      });
      return;
    }
    context.parallel->For(static_cast<int>(blocks_), [&](int block, int thread) {
      const int64_t first = tiles_ * block / blocks_, last = tiles_ * (block + 1) / blocks_;
      int16_t* input = reinterpret_cast<int16_t*>(own(thread));
      TransformInput(arguments, first, last, input);
      for (int panels = 0; panels < PanelBlocks(); ++panels) {
        RunPanels(arguments, first, last, FirstPanel(panels), input, own(thread) + input_bytes_);
      }
    });
  }

 private:
  void Plan(int threads) {
    const Geometry& g = geometry_;
    threads_ = threads;
    ys_ = TileBegins(g.out_height, g.dilation_y);
    xs_ = TileBegins(g.out_width, g.dilation_x);
    tiles_ = g.batch * ImageTiles(g);
    const int64_t tile_bytes = kPositions * channels_ * int64_t{sizeof(int16_t)};
    transform_late_ = TransformedBytes(g) > loops_.max_weight_bytes;
    const BlockLimits& limits = transform_late_ ? kWeightsMadeLate : kWeightsMadeOnce;
    const int64_t most = std::clamp(limits.bytes / tile_bytes, limits.least, limits.most);
    const bool share_input = threads > 1 && tiles_ <= most;
    blocks_ = CeilDiv(tiles_, most);
    if (!share_input) blocks_ = std::min(tiles_, RoundUp(blocks_, threads));
    block_panels_ = std::min<int64_t>(loops_.max_panels, share_input ? CeilDiv(group_panels_, threads) : group_panels_);
    group_blocks_ = CeilDiv(group_panels_, block_panels_);
    const int64_t block_tiles = CeilDiv(tiles_, blocks_);

    input_stride_ = OddLines(block_tiles * channels_ * int64_t{sizeof(int16_t)}) / int64_t{sizeof(int16_t)};
    accumulator_stride_ =
        OddLines(block_tiles * block_panels_ * kPanel * int64_t{sizeof(int32_t)}) / int64_t{sizeof(int32_t)};
    input_bytes_ = kPositions * input_stride_ * int64_t{sizeof(int16_t)};
    accumulator_bytes_ = kPositions * accumulator_stride_ * int64_t{sizeof(int32_t)};
    const bool one_part = part_pairs_ == pairs_;
    sums_bytes_ = (one_part ? 1 : 1 + block_tiles * block_panels_) * kTileSums * int64_t{sizeof(int32_t)};
    chunk_pairs_ = transform_late_ ? std::min(part_pairs_, PairsAtOnce(block_tiles)) : part_pairs_;
    for (int64_t pair = 0; pair < chunk_pairs_; ++pair) offsets_.push_back(pair * kDwordBytes);
    weight_stride_ = transform_late_ ? OddLines(chunk_pairs_ * kPanelBytes) : pairs_ * kPanelBytes;
    const int64_t late_bytes = transform_late_ ? block_panels_ * 2 * kPatch * weight_stride_ : 0;
    shared_bytes_ = share_input ? input_bytes_ : 0;
    thread_bytes_ = (share_input ? 0 : input_bytes_) + accumulator_bytes_ + sums_bytes_ + late_bytes;
  }

  // Panels that are multiplied together are of one group.
  int PanelBlocks() const { return static_cast<int>(geometry_.groups * group_blocks_); }
  int64_t FirstPanel(int64_t block) const {
    return block / group_blocks_ * group_panels_ + block % group_blocks_ * block_panels_;
  }

  // As the weight's transform wants it, [panel][pair][tap][16][2]; or transformed, [panel][position][pair][16][2].
  TensorType UntransformedType() const {
    return {DType::kI8, {panels_ * pairs_ * kTaps * kPairBytes}, std::nullopt, Layout::kRowMajor};
  }
  TensorType PackedType() const {
    if (transform_late_) return UntransformedType();
    return {DType::kU8, {panels_ * kPositions * weight_stride_}, std::nullopt, Layout::kRowMajor};
  }
  [[gnu::cold]] Tensor Packed(const int8_t* weight) const {
    const Geometry& g = geometry_;
    const int64_t panel_bytes = pairs_ * kTaps * kPairBytes;
    Tensor packed(UntransformedType());
    for (int64_t oc = 0; oc < g.out_channels; ++oc) {
      for (int64_t ic = 0; ic < g.group_in_channels(); ++ic) {
        for (int64_t tap = 0; tap < kTaps; ++tap) {
          packed.data<int8_t>()[oc / kPanel * panel_bytes + (ic / 2 * kTaps + tap) * kPairBytes + oc % kPanel * 2 +
                                ic % 2] = weight[(oc * g.group_in_channels() + ic) * kTaps + tap];
        }
      }
    }
    if (transform_late_) return packed;
    Tensor transformed(PackedType());
    for (int64_t panel = 0; panel < panels_; ++panel) {
      uint8_t* to = transformed.data<uint8_t>() + panel * kPositions * weight_stride_;
      for (int row_pair = 0; row_pair < 3; ++row_pair) {
        const int* rows = kWeightRowPairs[row_pair];
        loops_.transform_weight(packed.data<int8_t>() + panel * panel_bytes, pairs_, row_pair,
                                to + rows[0] * kPatch * weight_stride_, to + rows[1] * kPatch * weight_stride_,
                                weight_stride_);
      }
    }
    return transformed;
  }

  // [image][phase along y][tile][phase along x][tile]
  struct TilePlace {
    int64_t image, y, x;  // The first output's.
  };
  TilePlace PlaceOf(int64_t tile) const {
    const int64_t row_tiles = static_cast<int64_t>(xs_.size()), row = tile / row_tiles;
    const int64_t rows = static_cast<int64_t>(ys_.size());
    return {row / rows, ys_[row % rows], xs_[tile % row_tiles]};
  }

  // `to` is the place of the first tile in [position][tile][channel].
  void TransformInput(const Arguments& arguments, int64_t first, int64_t last, int16_t* to) const {
    const Geometry& g = geometry_;
    const uint8_t* const input = static_cast<const uint8_t*>(arguments.input);
    const uint8_t* const padding = padding_.data<uint8_t>();
    for (int64_t tile = first; tile < last; ++tile, to += channels_) {
      const TilePlace place = PlaceOf(tile);
      const uint8_t* pixels[kPositions];
      for (int i = 0; i < kPatch; ++i) {
        const int64_t y = place.y - g.pad_top + i * g.dilation_y;
        const bool row_inside = y >= 0 && y < g.in_height;
        const uint8_t* const row = row_inside ? input + operands_.input.Offset(place.image, y, 0) : nullptr;
        for (int j = 0; j < kPatch; ++j) {
          const int64_t x = place.x - g.pad_left + j * g.dilation_x;
          const bool inside = row != nullptr && x >= 0 && x < g.in_width;
          pixels[i * kPatch + j] = inside ? row + x * operands_.input.pixel_bytes : padding;
        }
      }
      loops_.transform_input(pixels, g.in_channels, constants_.input_flip(), to, input_stride_);
    }
  }

  // The tiles [first, last) of the output channels of some panels: block_panels_ from `panel` on, or what is left.
  void RunPanels(const Arguments& arguments, int64_t first, int64_t last, int64_t panel, const int16_t* input,
                 uint8_t* scratch) const {
    const int64_t panels = std::min(block_panels_, group_panels_ - panel % group_panels_);
    input += panel / group_panels_ * pairs_ * 2;
    int32_t* accumulators = reinterpret_cast<int32_t*>(scratch);
    int32_t* sums = reinterpret_cast<int32_t*>(scratch + accumulator_bytes_);
    uint8_t* late = scratch + accumulator_bytes_ + sums_bytes_;
    const int64_t late_stride = 2 * kPatch * weight_stride_;  // From panel to panel.
    Multiply m = {};
    m.a_stride = channels_ * int64_t{sizeof(int16_t)};
    m.offsets = offsets_.data();
    m.b_stride = transform_late_ ? late_stride : kPositions * weight_stride_;
    m.c_stride = panels * kPanel;
    m.panels = static_cast<int>(panels);
    const int64_t tiles = last - first;
    for (int64_t pair = 0, end; pair < pairs_; pair = end) {
      end = ChunkEnd(pair);
      m.depth = end - pair;
      m.accumulate = pair % part_pairs_ > 0;
      for (int row_pair = 0; row_pair < 3; ++row_pair) {
        for (int64_t p = 0; transform_late_ && p < panels; ++p) {
          uint8_t* to = late + p * late_stride;
          loops_.transform_weight(Untransformed(panel + p, pair), m.depth, row_pair, to, to + kPatch * weight_stride_,
                                  weight_stride_);
        }
        for (int row = 0; row < 2; ++row) {
          const int64_t first_position = kWeightRowPairs[row_pair][row] * kPatch;
          for (int64_t column = 0; column < kPatch; ++column) {
            const int64_t position = first_position + column;
            m.b =
                transform_late_ ? late + (row * kPatch + column) * weight_stride_ : PackedWeight(panel, position, pair);
            MultiplyPosition(m, Following(panel, pair, 2 * row_pair + row, column),
                             input + position * input_stride_ + pair * 2, tiles,
                             accumulators + position * accumulator_stride_);
          }
        }
      }
      if (end % part_pairs_ > 0 && end < pairs_) continue;
      const int32_t* from = accumulators;
      int32_t* of_parts = sums + kTileSums;  // Of the parts before, by tile and panel.
      for (int64_t tile = first; tile < last; ++tile) {
        const Outputs outputs = OutputsOf(arguments, tile, panel);
        for (int64_t p = 0; p < panels; ++p, from += kPanel, of_parts += kTileSums) {
          loops_.transform_output(from, accumulator_stride_, sums);
          for (int i = 0; end > part_pairs_ && i < kTileSums; ++i) sums[i] += of_parts[i];
          if (end == pairs_) {
            Store(outputs, p, sums);
          } else {
            std::memcpy(of_parts, sums, kTileSums * sizeof(int32_t));
          }
        }
      }
    }
  }

  // A chunk is of one part.
  int64_t ChunkEnd(int64_t pair) const {
    const int64_t part_end = (pair / part_pairs_ + 1) * part_pairs_;
    return std::min({pair + chunk_pairs_, part_end, pairs_});
  }

  const uint8_t* PackedWeight(int64_t panel, int64_t position, int64_t pair) const {
    return weight_->data<uint8_t>() + (panel * kPositions + position) * weight_stride_ + pair * kPanelBytes;
  }
  const int8_t* Untransformed(int64_t panel, int64_t pair) const {
    return weight_->data<int8_t>() + (panel * pairs_ + pair) * kTaps * kPairBytes;
  }

  // Weights that are needed soon, for the products of a position to fetch: a panel's, the next panel's as far behind as
  // in memory. The position's row is the `row`th in the order of kWeightRowPairs. Null: none.
  const uint8_t* Following(int64_t panel, int64_t pair, int row, int64_t column) const {
    if (transform_late_) {  // The next chunk's, a piece for each column.
      const int64_t begin = column * chunk_pairs_ * kPanelBytes;
      if (row > 0 || begin >= chunk_pairs_ * kTaps * kPairBytes) return nullptr;
      const int64_t end = ChunkEnd(pair);
      const bool last = end == pairs_;  // Of its panels.
      const int64_t next_panel = last ? panel + block_panels_ : panel, next_pair = last ? 0 : end;
      if (next_panel >= panels_) return nullptr;
      return reinterpret_cast<const uint8_t*>(Untransformed(next_panel, next_pair)) + begin;
    }
    if (column + 1 == kPatch) ++row;
    if (row == kPatch) return nullptr;
    return PackedWeight(panel, kWeightRowPairs[row / 2][row % 2] * kPatch + (column + 1) % kPatch, pair);
  }

  void MultiplyPosition(Multiply m, const uint8_t* following, const int16_t* input, int64_t tiles,
                        int32_t* accumulators) const {
    const int64_t panel_stride = transform_late_ ? pairs_ * kTaps * kPairBytes : m.b_stride;
    int left = static_cast<int>(tiles);
    for (int part = 0, parts = CeilDiv(left, loops_.max_rows); part < parts; ++part, left -= m.rows) {
      m.rows = CeilDiv(left, parts - part);
      m.a = input;
      m.c = accumulators;
      m.next = following != nullptr && part < m.panels ? following + part * panel_stride : nullptr;
      loops_.multiply(m);
      input += m.rows * channels_;
      accumulators += m.rows * m.c_stride;
    }
  }

  // Where a tile's outputs go, and how many exist: none where its phase has a tile less than the first one has.
  struct Outputs {
    Destination to;
    int rows, columns;
  };
  Outputs OutputsOf(const Arguments& arguments, int64_t tile, int64_t panel) const {
    const Geometry& g = geometry_;
    const TilePlace place = PlaceOf(tile);
    Outputs outputs;
    outputs.rows = static_cast<int>(std::min<int64_t>(kTile, CeilDiv(g.out_height - place.y, g.dilation_y)));
    outputs.columns = static_cast<int>(std::min<int64_t>(kTile, CeilDiv(g.out_width - place.x, g.dilation_x)));
    Destination& to = outputs.to;
    to = operands_.To(arguments, place.image, place.y, place.x, panel * kPanel);
    to.pixel_stride *= g.dilation_x, to.residual_pixel_stride *= g.dilation_x;
    to.row_stride *= g.dilation_y, to.residual_row_stride *= g.dilation_y;
    to.channel = static_cast<int>(panel * kPanel);
    to.channels = static_cast<int>(g.out_channels - panel * kPanel);
    return outputs;
  }

  // `panel` counts from the one that the outputs begin with.
  void Store(const Outputs& outputs, int64_t panel, const int32_t* sums) const {
    if (outputs.rows <= 0 || outputs.columns <= 0) return;
    const int first = static_cast<int>(panel * kPanel);
    Destination to = outputs.to;
    to.output = static_cast<uint8_t*>(to.output) + first * operands_.output_bytes;
    if (to.residual != nullptr) to.residual += first;
    to.channel += first;
    to.channels = std::min(to.channels - first, kPanel);
    loops_.store(constants_.stage(), to, sums, outputs.rows, outputs.columns);
  }

  const Geometry geometry_;
  const Loops loops_;
  const OutputConstants constants_;
  const Operands operands_;
  const int64_t channels_;    // Input channels, rounded up.
  const int64_t pairs_;       // Pairs of a group's input channels.
  const int64_t part_pairs_;  // Of a part: see the proof.
  const int64_t panels_, group_panels_;
  Tensor padding_;                // A pixel of zero points.
  std::vector<int64_t> offsets_;  // Where a chunk's pairs lie: they are contiguous.

  std::vector<int64_t> ys_, xs_;  // See PlaceOf.
  int64_t tiles_, blocks_;
  int64_t block_panels_, group_blocks_;  // Panels that are multiplied together; such blocks of a group.
  bool transform_late_;
  int64_t chunk_pairs_;
  int64_t input_stride_, accumulator_stride_;  // Elements from position to position.
  int64_t weight_stride_;                      // Bytes.
  int64_t input_bytes_, accumulator_bytes_, sums_bytes_, shared_bytes_, thread_bytes_;
  int threads_;
};

}  // namespace

bool Supports(const Problem& problem) {
  const Geometry& g = problem.geometry;
  const bool whole_panels = g.groups == 1 || (g.group_in_channels() % 2 == 0 && g.group_out_channels() % kPanel == 0);
  return g.kernel_height == 3 && g.kernel_width == 3 && g.stride_y == 1 && g.stride_x == 1 && whole_panels &&
         problem.by_rows();
}

bool Worthwhile(const Problem& problem, const Loops& loops) {
  const Geometry& g = problem.geometry;
  const int64_t channels = g.group_in_channels();
  if (channels < 16 || g.group_out_channels() < 16) return false;
  // Of an output channel, in the time of a direct product.
  const int64_t tiles = g.batch * ImageTiles(g);
  const int64_t outputs = int64_t{g.out_height} * g.out_width;
  const int64_t direct = g.batch * channels * (g.few_inside() ? g.taps_inside() : kTaps * outputs);
  const bool transform_late = TransformedBytes(g) > loops.max_weight_bytes;
  const int64_t weights = transform_late ? loops.weight_transform * channels : 0;
  // At most: only Make looks at all the weights.
  const int64_t parts = problem.max_abs_weight_sum < kMagnitudeBound ? 1 : CeilDiv(GroupPairs(g), kSmallPairs);
  const int64_t words = 2 * GroupPairs(g) * kPositions * loops.word_product;
  const int64_t inputs = channels * loops.input_transform / RoundUp(g.group_out_channels(), kPanel);
  return tiles * (words + inputs + parts * loops.output_transform) + weights <= direct;
}

std::unique_ptr<Algorithm> Make(const Problem& problem, const Loops& loops) {
  return std::make_unique<Winograd>(problem, loops);
}

}  // namespace fuselage::int8::conv2d::winograd
