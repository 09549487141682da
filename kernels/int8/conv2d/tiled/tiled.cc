// Convolution as products of tiles (AMX): no im2col. Where the input lies with a halo, the pixels of its rows follow
// each other at one distance, and so do those under any tap: sixteen of them, 64 channels each, are a tile of the left
// operand, read in place. An input that lies otherwise is copied to such a placement first.
//
// All of a tile's sum stays in registers, until the next product begins: during that its results are computed, by the
// vector units.
#include "kernels/int8/conv2d/tiled/tiled.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/base/check.h"
#include "ir/base/tensor.h"
#include "kernels/int8/conv2d/core/output_constants.h"
#include "kernels/int8/conv2d/tiled/input.h"

namespace fuselage::int8::conv2d::tiled {
namespace {

using kernels::kMaxTileSums;
using kernels::kTileBytes;
using kernels::kTileRowBytes;
using kernels::kTileRows;
using kernels::kTileSums;
using kernels::PlacedTensor;
using kernels::TileProduct;

// What of the input stays in a thread's second-level cache, beside weights and results, while all weights pass.
constexpr int64_t kInputBytes = 768 << 10;
// Weights that stay there too pass once for each few tiles: results are written to the first-level cache, whole lines,
// and reading weights again costs 64 bytes / kFewTiles a cycle.
constexpr int64_t kWeightBytes = 512 << 10;
constexpr int64_t kFewTiles = 32;
// Bytes of the panels of weights that a product takes. Four stay in the first-level cache; of two, 2 KB may come from
// the second-level one while four products of tiles take 64 cycles.
constexpr int64_t kFourPanelsBytes = 24 << 10, kTwoPanelsBytes = 80 << 10;
// Of weights that come later, every second line: the other of its 128 bytes comes with it. Of those that one product
// after another streams, two a step: the processor follows a stream by itself, and what it does not find in time waits
// in the buffers that the tiles' own loads need.
constexpr int64_t kPairBytes = 128, kStreamStride = kTileBytes / 2, kStreamAhead = 8 << 10;
// Of a product, and before them rows of the one before (see TileWindow).
constexpr int64_t kSumsBytes = 2 * kMaxTileSums * kTileSums * int64_t{sizeof(int32_t)};

// The tensor that is read in tiles: the input itself, or some images of it at a time, copied.
struct Plan {
  PlacedTensor input;
  int64_t copy_bytes;  // 0: not copied.
  TiledInput tiled;

  bool copied() const { return copy_bytes > 0; }
};

std::optional<Plan> PlanFor(const Problem& problem) {
  const Geometry& g = problem.geometry;
  const PlacedTensor input = problem.PlacedInput();
  if (std::optional<TiledInput> tiled = ReadInTiles(g, input, input.bytes, problem.row_pool.has_value())) {
    return Plan{input, 0, *std::move(tiled)};
  }
  const std::optional<kernels::Placement> placement = PlacementForTiles(g);
  if (!placement) return std::nullopt;
  const PlacedTensor image({1, g.in_channels, g.in_height, g.in_width}, *placement);
  const int64_t images = std::clamp<int64_t>(problem.threads * kInputBytes / image.image_bytes, 1, g.batch);
  const PlacedTensor copy({images, g.in_channels, g.in_height, g.in_width}, *placement);
  const int64_t bytes = RoundUp(copy.bytes + kTileRows * g.stride_x * copy.pixel_bytes, 64);
  std::optional<TiledInput> tiled = ReadInTiles(g, copy, bytes);
  if (!tiled) return std::nullopt;
  return Plan{copy, bytes, *std::move(tiled)};
}

int64_t GroupPanels(const Geometry& g) { return CeilDiv(g.group_out_channels(), kPanel); }

// One tile of pixels by four of channels, where their weights stay close; else two by two, or four by one.
int64_t PanelsAtOnce(int64_t panels, int64_t steps) {
  return panels >= 4 && 4 * steps * kTileBytes <= kFourPanelsBytes ? 4 : 2;
}

// Can it compare sums along rows? Only where results take as long as products do: four panels are all there are. Codes
// order as sums do.
bool PoolsRows(const Problem& problem, const Plan& plan) {
  const Geometry& g = problem.geometry;
  const kernels::PoolWindow::Axis& axis = *problem.row_pool;
  return axis.kernel <= kMostWindowPixels && axis.dilation == 1 && axis.pad_begin < axis.kernel &&
         (axis.out - 1) * axis.stride - axis.pad_begin < axis.in &&  // Each window sees a pixel,
         axis.stride <= kTileRows &&                                 // and one ends in each tile before another.
         g.groups == 1 && g.out_channels == 4 * kPanel && PanelsAtOnce(4, plan.tiled.steps()) == 4 &&
         problem.threads == 1 && problem.output_type != DType::kF32 && !problem.has_residual &&
         !problem.epilogue.function;
}

inline void CopyPixel(uint8_t* to, const uint8_t* from, int64_t bytes) {
  if (bytes >= 16) {
    std::memcpy(to, from, bytes);
  } else if (bytes >= 8) {
    std::memcpy(to, from, 8);
    std::memcpy(to + bytes - 8, from + bytes - 8, 8);
  } else if (bytes >= 4) {
    std::memcpy(to, from, 4);
    std::memcpy(to + bytes - 4, from + bytes - 4, 4);
  } else {
    for (int64_t i = 0; i < bytes; ++i) to[i] = from[i];
  }
}

// Row y of image n, from one placement to another. In each, pixels of even (odd) x are at a constant distance.
void CopyRow(const PlacedTensor& from, const uint8_t* source, int64_t n, const PlacedTensor& to, uint8_t* target,
             int64_t to_n, int64_t y) {
  const int64_t channels = from.channels, width = from.width;
  source += from.Offset(n, y, 0);
  target += to.Offset(to_n, y, 0);
  const auto step = [](const PlacedTensor& t, int64_t x) { return t.Offset(0, 0, x) - t.Offset(0, 0, 0); };
  const int64_t from_next = step(from, 1), from_step = step(from, 2), to_next = step(to, 1), to_step = step(to, 2);
  if (from_next == channels && to_next == channels) {
    if (from_step == 2 * channels && to_step == 2 * channels) return CopyPixel(target, source, width * channels);
    for (int64_t x = 0; x + 2 <= width; x += 2, source += from_step, target += to_step) {
      CopyPixel(target, source, 2 * channels);
    }
  } else {
    for (int64_t x = 0; x + 2 <= width; x += 2, source += from_step, target += to_step) {
      CopyPixel(target, source, channels);
      CopyPixel(target + to_next, source + from_next, channels);
    }
  }
  if (width % 2 != 0) CopyPixel(target, source, channels);
}

class Tiled : public Algorithm {
 public:
  Tiled(const Problem& problem, const Loops& loops, Plan plan)
      : geometry_(problem.geometry),
        loops_(loops),
        constants_(problem, problem.input_type == DType::kI8 ? CodeForm::kSigned : CodeForm::kUnsigned),
        signed_input_(problem.input_type == DType::kI8),
        padding_(static_cast<uint8_t>(problem.input_zero_point)),
        output_bytes_(ByteSize(problem.output_type)),
        threads_(problem.threads),
        original_(problem.PlacedInput()),
        residual_(problem.PlacedResidual()),
        output_(problem.PlacedOutput()),
        row_pool_(problem.row_pool),
        plan_(std::move(plan)),
        steps_(plan_.tiled.steps()),
        panels_(GroupPanels(problem.geometry)),
        panel_bytes_(steps_ * kTileBytes) {
    row_pool_ ? PlanWindows() : PlanPixels();
    PlanTasks();
    SetWeight(problem,
              absl::StrCat("conv2d tiled ", geometry_.groups, " ", steps_, " ",
                           absl::StrJoin(plan_.tiled.positions, " "), " ", ToString(PackedType())),
              [&] { return Packed(problem.weight); });
    plan_.tiled.positions.clear();
  }

  int64_t scratch_bytes() const override { return threads_ * kSumsBytes + plan_.copy_bytes; }
  int64_t constant_bytes() const override {
    return constants_.bytes() +
           static_cast<int64_t>(pixels_.size() * sizeof(TilePixel) + windows_.size() * sizeof(TileWindow) +
                                residual_offsets_.size() * sizeof(int32_t));
  }

  void Run(const Arguments& arguments, const kernels::RunContext& context) const override {
    uint8_t* scratch = static_cast<uint8_t*>(context.scratch.data);
    uint8_t* copy = scratch + threads_ * kSumsBytes;
    const uint8_t* input = static_cast<const uint8_t*>(arguments.input);
    const int64_t at_once = plan_.copied() ? plan_.input.batch : geometry_.batch;
    const int64_t row_pairs = CeilDiv(geometry_.in_height, 2);
    for (int64_t image = 0; image < geometry_.batch; image += at_once) {
      const int64_t images = std::min(at_once, geometry_.batch - image);
      if (plan_.copied()) {
        context.parallel->For(static_cast<int>(images * row_pairs), [&](int task, int) {
          const int64_t n = task / row_pairs, y = task % row_pairs * 2;
          const int64_t end = std::min<int64_t>(geometry_.in_height, y + 2);
          for (int64_t row = y; row < end; ++row) CopyRow(original_, input, image + n, plan_.input, copy, n, row);
          plan_.input.FillHalo(copy, padding_, n, y, end);
        });
      }
      const Images part = {plan_.copied() ? copy : input + image * plan_.input.image_bytes, image, images};
      context.parallel->For(threads_, [&](int task, int thread) {
        uint8_t* sums = scratch + thread * kSumsBytes + kSumsBytes / 2;
        Task(*this, arguments, part, reinterpret_cast<int32_t*>(sums)).Run(task);
      });
    }
  }

 private:
  struct Images {
    const uint8_t* input;  // The first one's.
    int64_t first, count;
  };
  // An image's.
  struct Tile {
    int64_t source;
    int first, count;  // A range of `pixels_` or `windows_`.
  };

  class Task {
   public:
    Task(const Tiled& conv, const Arguments& arguments, const Images& images, int32_t* sums)
        : conv_(conv), arguments_(arguments), images_(images), sums_(sums) {}

    void Run(int task) {
      const int64_t tiles = images_.count * conv_.tiles_.size(), parts = CeilDiv(conv_.panels_, conv_.panels_at_once_);
      int64_t first = 0, last = tiles, first_panel = 0, last_panel = conv_.panels_;
      if (conv_.split_panels_) {
        first_panel = parts * task / conv_.threads_ * conv_.panels_at_once_;
        last_panel = std::min(conv_.panels_, parts * (task + 1) / conv_.threads_ * conv_.panels_at_once_);
      } else {
        first = tiles * task / conv_.threads_;
        last = tiles * (task + 1) / conv_.threads_;
      }
      // For as long as its tiles hold something, a thread's context switches save and restore all 8 KB of them, and its
      // core does not sleep as deeply: so they are given up at the end of each task, before the thread waits.
      conv_.loops_.begin();
      for (int64_t tile = first; tile < last; tile += conv_.chunk_tiles_) {
        const int64_t end = std::min(last, tile + conv_.chunk_tiles_);
        prefetches_ = tile == first;
        for (int group = 0; group < conv_.geometry_.groups; ++group) {
          for (int64_t panel = first_panel; panel < last_panel; panel += conv_.panels_at_once_) {
            RunPanels(group, tile, end, panel, last_panel);
          }
        }
      }
      if (pending_) conv_.loops_.run(conv_.constants_.stage(), nullptr, &results_[1 - next_]);
      conv_.loops_.end();
    }

   private:
    // Panels (or the last ones) by the tiles [tile, end).
    void RunPanels(int group, int64_t tile, int64_t end, int64_t panel, int64_t last_panel) {
      const int panels = static_cast<int>(std::min(conv_.panels_at_once_, last_panel - panel));
      if (!conv_.by_columns_) {
        const int64_t tiles = kMaxTileSums / panels;
        PlanPrefetch(group, panel + panels, std::min<int64_t>(panel + 2 * panels, last_panel),
                     CeilDiv(end - tile, tiles));
        for (; tile < end; tile += tiles) {
          Multiply(group, tile, static_cast<int>(std::min(tiles, end - tile)), panel, panels);
        }
        return;
      }
      // Four tiles by one panel; one or two tiles that are left, by both.
      const int64_t rest = (end - tile) % kMaxTileSums, columns_end = rest <= 2 ? end - rest : end;
      for (int64_t p = panel; p < panel + panels; ++p) {
        PlanPrefetch(group, p + 1, std::min(p + 2, last_panel), CeilDiv(columns_end - tile, kMaxTileSums));
        for (int64_t t = tile; t < columns_end; t += kMaxTileSums) {
          Multiply(group, t, static_cast<int>(std::min<int64_t>(kMaxTileSums, columns_end - t)), p, 1);
        }
      }
      prefetch_lines_ = 0;
      if (columns_end < end) Multiply(group, columns_end, static_cast<int>(rest), panel, panels);
    }

    // Spreads the weights of the next panels over the steps of this pass.
    void PlanPrefetch(int group, int64_t panel, int64_t end, int64_t products) {
      prefetch_lines_ = 0;
      if (!prefetches_ || panel >= end || products == 0) return;
      prefetch_ = conv_.PanelWeight(group, panel);
      prefetch_end_ = conv_.PanelWeight(group, end);
      prefetch_stride_ = kPairBytes;
      if (conv_.by_columns_ && products == 1) {
        prefetch_ -= conv_.panel_bytes_ - kStreamAhead;
        prefetch_end_ -= conv_.panel_bytes_ - kStreamAhead;
        prefetch_stride_ = kStreamStride;
      }
      const int64_t lines = (prefetch_end_ - prefetch_) / prefetch_stride_;
      prefetch_lines_ = static_cast<int>(CeilDiv(lines, products * conv_.steps_));
    }

    void Multiply(int group, int64_t tile, int tiles, int64_t panel, int panels) {
      const Geometry& g = conv_.geometry_;
      TileProduct product;
      TileResults& results = results_[next_];
      product.a_row_bytes = conv_.plan_.tiled.pixel_bytes;
      product.offsets = conv_.plan_.tiled.offsets.data();
      product.steps = conv_.steps_;
      product.b = conv_.PanelWeight(group, panel);
      product.b_panel_bytes = conv_.panel_bytes_;
      product.begin = conv_.row_pool_ ? conv_.constants_.stage().bias + panel * kPanel : nullptr;
      product.tiles = tiles;
      product.panels = panels;
      product.signed_a = conv_.signed_input_;
      product.b_streams = panels * conv_.panel_bytes_ > kernels::kKeptBytes;
      product.prefetch = prefetch_;
      product.prefetch_lines = prefetch_ < prefetch_end_ ? prefetch_lines_ : 0;
      product.prefetch_stride = prefetch_stride_;
      prefetch_ += product.prefetch_lines * conv_.steps_ * prefetch_stride_;
      results.sums = sums_;
      results.tile_count = tiles;
      results.panels = panels;
      results.channel = static_cast<int>((group * conv_.panels_ + panel) * kPanel);
      results.channels = static_cast<int>(std::min<int64_t>(panels * kPanel, g.group_out_channels() - panel * kPanel));
      const int64_t channel = int64_t{group} * g.group_out_channels() + panel * kPanel;
      const int64_t image_tiles = conv_.tiles_.size();
      int64_t image = tile / image_tiles, in_image = tile % image_tiles;
      for (int t = 0; t < tiles; ++t, ++in_image) {
        if (in_image == image_tiles) in_image = 0, ++image;
        const Tile& from = conv_.tiles_[in_image];
        product.a[t] = images_.input + image * conv_.plan_.input.image_bytes + from.source +
                       int64_t{group} * g.group_in_channels();
        TileResults::Tile& to = results.tiles[t];
        to.pixels = conv_.row_pool_ ? nullptr : conv_.pixels_.data() + from.first;
        to.windows = conv_.row_pool_ ? conv_.windows_.data() + from.first : nullptr;
        to.count = from.count;
        const int64_t n = images_.first + image;
        to.output =
            static_cast<uint8_t*>(arguments_.output) + (n * conv_.output_.image_bytes + channel) * conv_.output_bytes_;
        to.residual_offsets = nullptr;
        to.residual = nullptr;
        if (arguments_.residual == nullptr) continue;
        to.residual_offsets = conv_.residual_offsets_.data() + from.first;
        to.residual = static_cast<const uint8_t*>(arguments_.residual) + n * conv_.residual_.image_bytes + channel;
      }
      conv_.loops_.run(conv_.constants_.stage(), &product, pending_ ? &results_[1 - next_] : nullptr);
      pending_ = true;
      next_ = 1 - next_;
    }

    const Tiled& conv_;
    const Arguments& arguments_;
    const Images& images_;
    int32_t* const sums_;
    TileResults results_[2];
    int next_ = 0;             // Which of the two is next.
    bool pending_ = false;     // Results of the other one are to be computed.
    bool prefetches_ = false;  // Weights come from beyond the second-level cache.
    const int8_t *prefetch_ = nullptr, *prefetch_end_ = nullptr;
    int prefetch_lines_ = 0;
    int64_t prefetch_stride_ = 0;
  };

  const int8_t* PanelWeight(int group, int64_t panel) const {
    return weight_->data<int8_t>() + (group * panels_ + panel) * panel_bytes_;
  }

  void PlanPixels() {
    const bool has_residual = constants_.stage().has_residual;
    for (const TiledInput::Tile& tile : plan_.tiled.tiles) {
      const int count = static_cast<int>(RoundUp(tile.pixels, 4));
      tiles_.push_back({tile.source, static_cast<int>(pixels_.size()), count});
      for (int i = 0; i < count; ++i) {
        const TiledInput::Pixel& pixel = plan_.tiled.pixels[tile.first_pixel + std::min(i, tile.pixels - 1)];
        pixels_.push_back({static_cast<int32_t>(output_.Offset(0, pixel.y, pixel.x) * output_bytes_),
                           static_cast<uint16_t>(pixel.row * kTileRowBytes)});
        if (has_residual) {
          residual_offsets_.push_back(static_cast<int32_t>(residual_.Offset(0, pixel.y, pixel.x)));
        }
      }
    }
    plan_.tiled.tiles.clear();
    plan_.tiled.pixels.clear();
  }

  // Of each tile those that end in it.
  void PlanWindows() {
    const TiledInput& tiled = plan_.tiled;
    const int64_t width = row_pool_->in, before = panels_ * kTileBytes;
    for (const TiledInput::Tile& tile : tiled.tiles) {
      const TiledInput::Pixel& first = tiled.pixels[tile.first_pixel];
      const int begin = static_cast<int>(windows_.size());
      for (int64_t i = 0; i < row_pool_->out; ++i) {
        const int64_t start = i * row_pool_->stride - row_pool_->pad_begin;
        const int64_t end = std::min(start + row_pool_->kernel, width);
        if (end <= first.x || end > first.x + tile.pixels) continue;
        TileWindow window = {static_cast<int32_t>(output_.Offset(0, first.y, i) * output_bytes_), {}};
        for (int64_t k = 0; k < kMostWindowPixels; ++k) {
          const int64_t x = std::clamp(start + k, std::max<int64_t>(start, 0), end - 1) - first.x;
          const int64_t bytes = x >= 0 ? (first.row + x) * kTileRowBytes : (kTileRows + x) * kTileRowBytes - before;
          window.sums[k] = static_cast<int16_t>(bytes);
        }
        windows_.push_back(window);
      }
      tiles_.push_back({tile.source, begin, static_cast<int>(windows_.size()) - begin});
    }
    plan_.tiled.tiles.clear();
    plan_.tiled.pixels.clear();
  }

  void PlanTasks() {
    const int64_t image_tiles = static_cast<int64_t>(tiles_.size());
    const int64_t images = plan_.copied() ? plan_.input.batch : geometry_.batch;
    // Threads share out the output channels where the weights outweigh the input, else the pixels.
    const int64_t weight_bytes = geometry_.groups * panels_ * panel_bytes_;
    by_columns_ = 2 * panel_bytes_ > kTwoPanelsBytes;
    panels_at_once_ = PanelsAtOnce(panels_, steps_);
    split_panels_ = panels_ >= panels_at_once_ * threads_ && weight_bytes > images * plan_.input.image_bytes;
    const int64_t tiles =
        weight_bytes <= kWeightBytes ? kFewTiles : image_tiles * kInputBytes / plan_.input.image_bytes;
    chunk_tiles_ = std::max<int64_t>(kMaxTileSums, tiles / kMaxTileSums * kMaxTileSums);
  }

  // [group][panel][step][16][16 channels][4]
  TensorType PackedType() const {
    return {DType::kI8, {geometry_.groups * panels_ * panel_bytes_}, std::nullopt, Layout::kRowMajor};
  }
  Tensor Packed(const int8_t* weight) const {
    const Geometry& g = geometry_;
    const int64_t channels = g.group_in_channels(), taps = int64_t{1} * g.kernel_height * g.kernel_width;
    Tensor packed(PackedType());
    for (int64_t oc = 0; oc < g.out_channels; ++oc) {
      const int64_t group = oc / g.group_out_channels(), in_group = oc % g.group_out_channels();
      int8_t* panel = packed.data<int8_t>() + (group * panels_ + in_group / kPanel) * panel_bytes_;
      for (int64_t tap = 0; tap < taps; ++tap) {
        for (int64_t c = 0; c < channels; ++c) {
          const int64_t at = plan_.tiled.positions[tap * channels + c];
          panel[(at / 4 * kPanel + in_group % kPanel) * 4 + at % 4] = weight[(oc * channels + c) * taps + tap];
        }
      }
    }
    return packed;
  }

  const Geometry geometry_;
  const Loops loops_;
  const OutputConstants constants_;
  const bool signed_input_;
  const uint8_t padding_;  // The zero point, as stored.
  const int64_t output_bytes_;
  const int threads_;
  const PlacedTensor original_, residual_, output_;
  const std::optional<kernels::PoolWindow::Axis> row_pool_;
  Plan plan_;
  const int64_t steps_, panels_, panel_bytes_;  // Panels of a group.
  std::vector<Tile> tiles_;
  std::vector<TilePixel> pixels_;
  std::vector<TileWindow> windows_;
  std::vector<int32_t> residual_offsets_;
  bool split_panels_, by_columns_;
  int64_t panels_at_once_;
  int64_t chunk_tiles_;
};

// One of more than a few operations.
bool HasLongFunction(const Problem& problem) {
  if (!problem.epilogue.function) return false;
  switch (problem.epilogue.function->op) {
    case ElementwiseOp::kLeakyRelu:
    case ElementwiseOp::kHardsigmoid:
    case ElementwiseOp::kHardswish: return false;
    default: return true;
  }
}

}  // namespace

bool Supports(const Problem& problem) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const PlacedTensor output = problem.PlacedOutput(), residual = problem.PlacedResidual();
  if (output.image_bytes * 4 > kMost || residual.image_bytes > kMost) return false;
  return PlanFor(problem).has_value();
}

// A tile's product takes 16 cycles, and its multiplications 106 with AVX-512 VNNI (Sapphire Rapids, measured): it is
// worth it where a fourth of them, and more, are the convolution's. Beside products of tiles floating-point operations
// start half as often: a long function of a tile's sums loses as much as two products and a half gain.
bool Worthwhile(const Problem& problem) {
  const Geometry& g = problem.geometry;
  const std::optional<Plan> plan = PlanFor(problem);
  const int64_t sums = g.groups * GroupPanels(g) * static_cast<int64_t>(plan->tiled.tiles.size()) * g.batch;
  const int64_t halves = 2 * plan->tiled.steps() + (HasLongFunction(problem) ? 5 : 0);
  return g.macs() * 8 > sums * halves * kTileBytes * kPanel;
}

bool ComputesBands(const Problem& problem) {
  const std::optional<Plan> plan = PlanFor(problem);
  return plan && !plan->copied() && (!problem.row_pool || PoolsRows(problem, *plan));
}

kernels::Placement PreferredInputPlacement(const Problem& problem) {
  const std::optional<kernels::Placement> placement = PlacementForTiles(problem.geometry);
  return placement ? *placement : kernels::Placement();
}

std::unique_ptr<Algorithm> Make(const Problem& problem, const Loops& loops) {
  std::optional<Plan> plan = PlanFor(problem);
  FUSELAGE_CHECK(plan.has_value());
  return std::make_unique<Tiled>(problem, loops, *std::move(plan));
}

}  // namespace fuselage::int8::conv2d::tiled
