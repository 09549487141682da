// Depthwise convolution: each channel has its own kernel, so there is no sum over channels, and channels are the lanes.
//
// What one instruction adds within a lane are the taps of several input rows in one column. So the pixels of as many
// rows are interleaved first, channel by channel, into a buffer that stays in the first-level cache. A column of it
// serves all outputs that read it: kernel_width of a row, and of several rows, where the weights of taps that a row has
// not are 0. With 3x3, stride 1 and dwords of four rows, a column of four rows serves two output rows, and an output
// takes three steps of the depth. Padding is interleaved as pixels are: nothing is copied for it.
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "ir/base/tensor.h"
#include "kernels/int8/conv2d/operands.h"
#include "kernels/int8/conv2d/output_constants.h"
#include "kernels/int8/conv2d/variants.h"

namespace fuselage::int8::conv2d {
namespace {

// Of the interleaved columns: they share the first-level cache with weights and pixels.
constexpr int64_t kColumnBytes = 20 << 10;
constexpr int kMostRows = 4;  // Output rows that are computed from the same columns.

// Which input rows serve `count` consecutive output rows.
struct RowPlan {
  int count;
  std::vector<int64_t> inputs;  // Ascending, from the first output row's first tap on.
  struct Step {
    int64_t dword;  // Of a column.
    int64_t kx;
  };
  std::vector<std::vector<Step>> steps;  // Of each output row's depth.
  int64_t dwords;                        // Of a column.
};

RowPlan PlanRows(const Geometry& g, int dword_rows, int count) {
  RowPlan plan;
  plan.count = count;
  for (int64_t row = 0; row < count; ++row) {
    for (int64_t ky = 0; ky < g.kernel_height; ++ky) plan.inputs.push_back(row * g.stride_y + ky * g.dilation_y);
  }
  std::sort(plan.inputs.begin(), plan.inputs.end());
  plan.inputs.erase(std::unique(plan.inputs.begin(), plan.inputs.end()), plan.inputs.end());
  plan.dwords = CeilDiv(plan.inputs.size(), dword_rows);
  for (int64_t row = 0; row < count; ++row) {
    std::vector<bool> read(plan.dwords);
    for (int64_t ky = 0; ky < g.kernel_height; ++ky) {
      const int64_t input = row * g.stride_y + ky * g.dilation_y;
      const auto at = std::lower_bound(plan.inputs.begin(), plan.inputs.end(), input);
      read[(at - plan.inputs.begin()) / dword_rows] = true;
    }
    plan.steps.emplace_back();
    for (int64_t dword = 0; dword < plan.dwords; ++dword) {
      for (int64_t kx = 0; read[dword] && kx < g.kernel_width; ++kx) plan.steps.back().push_back({dword, kx});
    }
  }
  return plan;
}

// The number of output rows for which a row takes the least time.
RowPlan BestRows(const Geometry& g, const DepthwisePrimitives& primitives) {
  const auto time = [&](const RowPlan& plan) {
    int64_t steps = plan.dwords * std::min(g.stride_x, g.kernel_width) * primitives.interleave_steps;
    for (const auto& row : plan.steps) steps += static_cast<int64_t>(row.size());
    return static_cast<double>(steps) / plan.count;
  };
  RowPlan best = PlanRows(g, primitives.dword_rows, 1);
  for (int count = 2; count <= std::min(kMostRows, g.out_height); ++count) {
    RowPlan plan = PlanRows(g, primitives.dword_rows, count);
    if (time(plan) < time(best)) best = std::move(plan);
  }
  return best;
}

class Depthwise : public Algorithm {
 public:
  Depthwise(const Problem& problem, const DepthwisePrimitives& primitives)
      : geometry_(problem.geometry),
        primitives_(primitives),
        constants_(ForWholeTensor(problem), primitives.dword_rows == 4 ? CodeForm::kUnsigned : CodeForm::kSigned),
        operands_(problem),
        rows_(BestRows(problem.geometry, primitives)),
        block_channels_(primitives.block_panels * kPanel),
        threads_(problem.threads) {
    const Geometry& g = geometry_;
    // A pixel of zero points.
    padding_ = Tensor(DType::kU8, {block_channels_});
    std::memset(padding_.raw_data(), static_cast<uint8_t>(problem.input_zero_point), padding_.byte_size());
    blocks_ = CeilDiv(g.in_channels, block_channels_);
    row_groups_ = CeilDiv(g.out_height, rows_.count);
    // Each thread has rows of all channels where there are fewer images than threads.
    row_parts_ = g.batch < threads_ ? std::min<int64_t>(threads_, row_groups_) : 1;
    PlanColumns();
    Pack(problem.weight);
  }

  int64_t scratch_bytes() const override { return scratch_per_thread_ * threads_; }
  int64_t weight_bytes() const override { return weight_.byte_size() + constants_.bytes() + padding_.byte_size(); }

  void Run(const Arguments& arguments, const kernels::RunContext& context) const override {
    const int64_t tasks = geometry_.batch * row_parts_ * blocks_;
    context.parallel->For(static_cast<int>(tasks), [&](int task, int thread) {
      const int64_t block = task % blocks_, part = task / blocks_ % row_parts_, image = task / blocks_ / row_parts_;
      uint8_t* columns = static_cast<uint8_t*>(context.scratch.data) + thread * scratch_per_thread_;
      const int64_t end = row_groups_ * (part + 1) / row_parts_;
      for (int64_t group = row_groups_ * part / row_parts_; group < end; ++group) {
        for (int64_t x = 0; x < geometry_.out_width; x += tile_width_) {
          RunTile(arguments, image, group * rows_.count, x, block, columns);
        }
      }
    });
  }

 private:
  // The output constants are laid out by group; here all channels are one group of lanes.
  static Problem ForWholeTensor(Problem problem) {
    problem.geometry.groups = 1;
    problem.geometry.in_channels = 1;
    return problem;
  }

  int64_t Channels(int64_t block) const {
    return std::min(block_channels_, geometry_.in_channels - block * block_channels_);
  }
  int64_t DwordBytes() const { return block_channels_ * kDwordBytes; }

  // The columns under a tile's outputs: one run of all of them, or, where that is less, a run for each tap.
  void PlanColumns() {
    const Geometry& g = geometry_;
    const int64_t column_bytes = rows_.dwords * DwordBytes();
    const auto joined = [&](int64_t width) {
      return (width - 1) * g.stride_x + (g.kernel_width - 1) * g.dilation_x + 1;
    };
    const auto apart = [&](int64_t width) { return width * g.kernel_width; };
    const auto fits = [&](int64_t width) {
      return std::min(joined(width), apart(width)) * column_bytes <= kColumnBytes;
    };
    tile_width_ = 1;
    while (tile_width_ < g.out_width && (tile_width_ < 8 || fits(tile_width_ + 1))) ++tile_width_;
    tile_width_ = CeilDiv(g.out_width, CeilDiv(g.out_width, tile_width_));
    const bool one_run = joined(tile_width_) <= apart(tile_width_);
    runs_ = one_run ? 1 : g.kernel_width;
    run_columns_ = one_run ? joined(tile_width_) : tile_width_;
    column_step_ = one_run ? 1 : g.stride_x;
    pixel_step_ = (one_run ? g.stride_x : 1) * column_bytes;
    scratch_per_thread_ = runs_ * run_columns_ * column_bytes;
    for (const auto& steps : rows_.steps) {
      offsets_.emplace_back();
      for (const RowPlan::Step& step : steps) {
        const int64_t column = step.kx * (one_run ? g.dilation_x : run_columns_);
        offsets_.back().push_back(column * column_bytes + step.dword * DwordBytes());
      }
    }
  }

  // [block][output row][step][channel of the block][row of a dword]
  void Pack(const int8_t* weight) {
    const Geometry& g = geometry_;
    block_steps_ = 0;
    for (const auto& steps : rows_.steps) block_steps_ += static_cast<int64_t>(steps.size());
    weight_ = Tensor(DType::kU8, {blocks_ * block_steps_ * DwordBytes()});
    for (int64_t c = 0; c < g.in_channels; ++c) {
      uint8_t* to = weight_.data<uint8_t>() + c / block_channels_ * block_steps_ * DwordBytes();
      to += c % block_channels_ * kDwordBytes;
      for (int64_t row = 0; row < rows_.count; ++row) {
        for (const RowPlan::Step& step : rows_.steps[row]) {
          PackDword(weight + c * g.kernel_height * g.kernel_width, row, step, to);
          to += DwordBytes();
        }
      }
    }
  }

  void PackDword(const int8_t* weight, int64_t row, const RowPlan::Step& step, uint8_t* to) const {
    const Geometry& g = geometry_;
    for (int i = 0; i < primitives_.dword_rows; ++i) {
      const size_t input = step.dword * primitives_.dword_rows + i;
      if (input >= rows_.inputs.size()) return;
      const int64_t offset = rows_.inputs[input] - row * g.stride_y, ky = offset / g.dilation_y;
      if (offset < 0 || offset % g.dilation_y != 0 || ky >= g.kernel_height) continue;
      const int8_t w = weight[ky * g.kernel_width + step.kx];
      const int16_t wide = w;
      if (primitives_.dword_rows == 4) std::memcpy(to + i, &w, sizeof(w));
      if (primitives_.dword_rows == 2) std::memcpy(to + 2 * i, &wide, sizeof(wide));
    }
  }

  // Some output rows from `out_y` on, a tile's outputs from `out_x` on, one block of channels.
  void RunTile(const Arguments& arguments, int64_t image, int64_t out_y, int64_t out_x, int64_t block,
               uint8_t* columns) const {
    const Geometry& g = geometry_;
    for (int64_t run = 0; run < runs_; ++run) {
      Interleave(arguments, image, out_y * g.stride_y - g.pad_top, out_x * g.stride_x - g.pad_left + run * g.dilation_x,
                 block, columns + run * run_columns_ * rows_.dwords * DwordBytes());
    }
    DepthwiseProduct product;
    product.columns = columns;
    product.pixel_step = pixel_step_;
    product.pixels = std::min<int64_t>(tile_width_, g.out_width - out_x);
    const uint8_t* weight = weight_.data<uint8_t>() + block * block_steps_ * DwordBytes();
    for (int64_t row = 0; row < std::min<int64_t>(rows_.count, g.out_height - out_y); ++row) {
      Destination to = operands_.To(arguments, image, out_y + row, out_x, block * block_channels_);
      to.channel = static_cast<int>(block * block_channels_);
      to.channels = static_cast<int>(Channels(block));
      product.offsets = offsets_[row].data();
      product.depth = static_cast<int64_t>(offsets_[row].size());
      product.weight = weight;
      primitives_.multiply(constants_.stage(), to, product);
      weight += product.depth * DwordBytes();
    }
  }

  // A run of columns from x on, of the input rows from y on.
  void Interleave(const Arguments& arguments, int64_t image, int64_t y, int64_t x, int64_t block, uint8_t* to) const {
    const Geometry& g = geometry_;
    // The columns that lie inside the image.
    const int64_t begin = std::min(run_columns_, x < 0 ? CeilDiv(-x, column_step_) : 0);
    const int64_t end = std::clamp(CeilDiv(g.in_width - x, column_step_), begin, run_columns_);
    const uint8_t* input = static_cast<const uint8_t*>(arguments.input) + block * block_channels_;
    DepthwiseColumns columns;
    columns.channels = static_cast<int>(Channels(block));
    columns.flip = constants_.input_flip();
    columns.to_step = rows_.dwords * DwordBytes();
    for (int64_t dword = 0; dword < rows_.dwords; ++dword, to += DwordBytes()) {
      const auto interleave = [&](int64_t from, int64_t until, bool inside) {
        if (from == until) return;
        for (int64_t i = 0; i < primitives_.dword_rows; ++i) {
          const int64_t last = static_cast<int64_t>(rows_.inputs.size()) - 1;
          const int64_t row = y + rows_.inputs[std::min(dword * primitives_.dword_rows + i, last)];
          const bool pixels = inside && row >= 0 && row < g.in_height;
          columns.rows[i] =
              pixels ? input + operands_.input.Offset(image, row, x + from * column_step_) : padding_.data<uint8_t>();
          columns.steps[i] = pixels ? column_step_ * operands_.input.pixel_bytes : 0;
        }
        columns.count = until - from;
        columns.to = to + from * columns.to_step;
        primitives_.interleave(columns);
      };
      interleave(0, begin, false);
      interleave(begin, end, true);
      interleave(end, run_columns_, false);
    }
  }

  const Geometry geometry_;
  const DepthwisePrimitives& primitives_;
  const OutputConstants constants_;
  const Operands operands_;
  const RowPlan rows_;
  const int64_t block_channels_;
  const int threads_;
  Tensor weight_, padding_;
  int64_t blocks_, block_steps_;  // Blocks of channels, and of each one the steps of all output rows.
  int64_t row_groups_, row_parts_;
  int64_t tile_width_;                         // Outputs of a row.
  int64_t runs_, run_columns_;                 // Of interleaved columns.
  int64_t column_step_;                        // From column to column, in the input,
  int64_t pixel_step_;                         // and from output to output, in bytes of columns.
  std::vector<std::vector<int64_t>> offsets_;  // Of the steps of each output row.
  int64_t scratch_per_thread_;
};

}  // namespace

bool DepthwiseSupports(const Problem& problem) {
  const Geometry& g = problem.geometry;
  return g.groups == g.in_channels && g.out_channels == g.in_channels && problem.by_rows();
}

std::unique_ptr<Algorithm> MakeDepthwise(const Problem& problem, const DepthwisePrimitives& primitives) {
  return std::make_unique<Depthwise>(problem, primitives);
}

}  // namespace fuselage::int8::conv2d
