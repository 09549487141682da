// Depthwise convolution, and groups of few channels. Output channels are the lanes, and a lane's dword has what one
// instruction adds within it.
//
// Depthwise, each channel has its own kernel, and there is no sum over channels.
// What one instruction adds within a lane are the taps of several input rows in one column. So the pixels of as many
// rows are interleaved first, channel by channel, into a buffer that stays in the first-level cache. A column of it
// serves all outputs that read it: kernel_width of a row, and of several rows, where the weights of taps that a row has
// not are 0. With 3x3, stride 1 and dwords of four rows, a column of four rows serves two output rows, and an output
// takes three steps of the depth. Padding is interleaved as pixels are: nothing is copied for it. Of an image whose
// output rows all share columns, the rows beside it are one row, where a dword has room for the sum of their weights.
//
// A kernel of one row (a sequence's, or half of a separable one) has nothing to add in other rows: a dword has taps
// that follow each other in the row. The column that begins at a pixel serves every output of whose kernel it is a
// part.
//
// Pixels of few channels, or of a number that is no multiple of a panel, would leave lanes idle. Where all operands are
// dense, a row of columns is a line of lanes without gaps instead, and so are the sums, which become codes as if they
// were pixels of a multiple of a panel, whose constants repeat.
//
// In groups of 4, 8 or 16 channels a dword has four (or two) channels of the lane's group instead, in one row. A column
// has them once, or spread to the group's lanes: no product is wasted on another group. AVX-512 spreads them on their
// way from the input to the products, without a buffer, where kernels are 3 wide.
#include "kernels/int8/conv2d/depthwise/depthwise.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/base/tensor.h"
#include "kernels/int8/conv2d/core/operands.h"
#include "kernels/int8/conv2d/core/output_constants.h"
#include "kernels/int8/conv2d/depthwise/row_plan.h"

namespace fuselage::int8::conv2d::depthwise {
namespace {

// Pixels that are worth a call of `finish`, where rows that follow each other in memory are narrower.
constexpr int64_t kFinishedPixels = 32;
// The same of a line's, whose constants repeat after no more than so many lanes.
constexpr int64_t kFinishedLinePixels = 128, kMostLineLanes = 256;
// Rows of so many bytes, in and out, go through all blocks and tiles before the next, for they stay in a second-level
// cache, where an image of more than twice as many does not.
constexpr int64_t kRowsBytes = 192 << 10;

class Depthwise : public Algorithm {
 public:
  Depthwise(const Problem& problem, const Loops& loops, const direct::Loops& direct)
      : geometry_(problem.geometry),
        loops_(loops),
        finish_(direct.finish),
        finished_channels_(direct.max_panels * kPanel),
        constants_(ForWholeTensor(problem), CodeForm::kUnsigned),
        operands_(problem),
        form_(FormOf(problem.geometry, loops)),
        rows_(BestRows(problem.geometry, loops)),
        along_row_(IsAlongRow(problem.geometry, form_)),
        taps_(along_row_ ? 1 : problem.geometry.kernel_width),
        weight_rows_(form_.rows == 1 ? 1 : rows_.count),
        threads_(problem.threads) {
    const Geometry& g = geometry_;
    blocks_ = CeilDiv(g.in_channels, kBlock);
    const int last = g.in_channels % kBlock;
    if (blocks_ > 1 && last > 0 && last < kPanel && !loops.masks) last_moves_ = kPanel;
    PlanTasks();
    const OutputStage& stage = constants_.stage();
    const bool codes = !stage.is_float && stage.function == nullptr;
    fused_ = loops.multiply_codes != nullptr && codes;
    codes_from_input_ = codes && !stage.has_residual;
    from_input_ = loops.multiply_input != nullptr && constants_.input_flip() == 0 && g.kernel_width == 3 &&
                  g.kernel_height <= kMostKernelRows && g.dilation_x == 1 && g.stride_x <= 2 &&
                  g.out_width >= kLeastPixels && operands_.input.placement.even();
    PlanLines();
    PlanColumns();
    padding_ = Tensor(DType::kU8, {std::max<int64_t>(kBlock, line_columns_ ? run_columns_ * g.in_channels : 0)});
    std::memset(padding_.raw_data(), static_cast<uint8_t>(problem.input_zero_point), padding_.byte_size());
    for (int64_t row = 0; row < weight_rows_; ++row) {
      block_steps_ += static_cast<int64_t>(rows_.reads[row].size()) * taps_;
    }
    SetWeight(problem,
              absl::StrCat("conv2d depthwise ", g.groups, " ", form_.rows, " ", form_.channels, " ", rows_.count, " ",
                           g.stride_y, " ", g.dilation_y, " ", PaddingName(), ToString(PackedType())),
              [&] { return Packed(problem.weight); });
  }

  int64_t scratch_bytes() const override { return scratch_per_thread_ * threads_; }
  int64_t constant_bytes() const override { return constants_.bytes() + line_.bytes() + padding_.byte_size(); }

  void Run(const Arguments& arguments, const kernels::RunContext& context) const override {
    const int64_t tasks = geometry_.batch * row_parts_ * (blocks_ / task_blocks_);
    context.parallel->For(static_cast<int>(tasks), [&](int task, int thread) {
      RunTask(arguments, task, static_cast<uint8_t*>(context.scratch.data) + thread * scratch_per_thread_);
    });
  }

 private:
  // The output constants are laid out by group; here all channels are one group of lanes.
  static Problem ForWholeTensor(Problem problem) {
    problem.geometry.in_channels = problem.geometry.group_in_channels();
    problem.geometry.groups = 1;
    return problem;
  }

  int64_t FirstChannel(int64_t block) const { return block * kBlock - (block == blocks_ - 1 ? last_moves_ : 0); }
  int Channels(int64_t block) const {
    const int64_t end = block + 1 < blocks_ ? FirstChannel(block + 1) : geometry_.in_channels;
    return static_cast<int>(end - FirstChannel(block));
  }

  void PlanTasks() {
    const Geometry& g = geometry_;
    row_groups_ = CeilDiv(g.out_height, rows_.count);
    const int64_t image_bytes = int64_t{g.in_height} * g.in_width * operands_.input.pixel_bytes +
                                int64_t{g.out_height} * g.out_width * operands_.output.pixel_bytes;
    const bool by_rows = image_bytes > 2 * kRowsBytes;
    task_blocks_ = by_rows ? blocks_ : 1;
    // Each thread has rows of all channels where there are fewer images than threads.
    row_parts_ = g.batch < threads_ ? threads_ : 1;
    if (by_rows) row_parts_ = RoundUp(CeilDiv(image_bytes, kRowsBytes), threads_);
    row_parts_ = std::min(row_parts_, row_groups_);
  }

  // What of dense operands goes by lines.
  void PlanLines() {
    const int64_t channels = geometry_.in_channels, lanes = std::lcm(channels, int64_t{kPanel});
    const bool lines = loops_.multiply_line != nullptr && blocks_ == 1;
    line_columns_ = lines && operands_.input.pixel_bytes == channels;
    sum_step_ = lines ? channels : kBlock;
    const bool dense = operands_.output.pixel_bytes == channels && operands_.residual.pixel_bytes == channels;
    if (sum_step_ == kBlock || !dense || lanes > kMostLineLanes) return;
    OutputStage& stage = line_.stage = constants_.stage();
    line_.bias = std::vector<int32_t>(lanes);
    line_.multiplier = std::vector<float>(lanes);
    line_.float_bias = std::vector<float>(stage.is_float ? lanes : 0);
    line_.function_multiplier = line_.function_offset = std::vector<float>(lanes);
    for (int64_t lane = 0; lane < lanes; ++lane) {
      line_.bias[lane] = stage.bias[lane % channels];
      line_.multiplier[lane] = stage.multiplier[lane % channels];
      if (stage.is_float) line_.float_bias[lane] = stage.float_bias[lane % channels];
      line_.function_multiplier[lane] = stage.function_multiplier[lane % channels];
      line_.function_offset[lane] = stage.function_offset[lane % channels];
    }
    stage.bias = line_.bias.data();
    stage.multiplier = line_.multiplier.data();
    stage.float_bias = line_.float_bias.data();
    stage.function_multiplier = line_.function_multiplier.data();
    stage.function_offset = line_.function_offset.data();
  }

  // The columns under a tile's outputs: one run of all of them, or, where that is less, a run for each tap.
  void PlanColumns() {
    const Geometry& g = geometry_;
    const int64_t dwords = rows_.column_bytes / form_.rows_step, dword_columns = int64_t{form_.rows} * g.dilation_x;
    const int64_t line_step = int64_t{g.in_channels} * kDwordBytes;
    const int64_t column_bytes = line_columns_ ? dwords * line_step : rows_.column_bytes;
    const int64_t last_column =
        along_row_ ? rows_.reads[0].back() * dword_columns : (g.kernel_width - int64_t{1}) * g.dilation_x;
    const auto joined = [&](int64_t width) { return (width - 1) * g.stride_x + last_column + 1; };
    const auto apart = [&](int64_t width) { return along_row_ ? joined(width) : width * g.kernel_width; };
    const auto fits = [&](int64_t width) {
      return std::min(joined(width), apart(width)) * column_bytes <= loops_.column_bytes;
    };
    tile_width_ = 1;
    while (tile_width_ < g.out_width && (tile_width_ < 8 || fits(tile_width_ + 1))) ++tile_width_;
    tile_width_ = CeilDiv(g.out_width, CeilDiv(g.out_width, tile_width_));
    const bool one_run = joined(tile_width_) <= apart(tile_width_);
    line_columns_ = line_columns_ && (one_run || g.stride_x == 1);
    runs_ = one_run ? 1 : g.kernel_width;
    run_columns_ = one_run ? joined(tile_width_) : tile_width_;
    column_step_ = one_run ? 1 : g.stride_x;
    column_step_bytes_ = line_columns_ ? line_step : rows_.column_bytes;
    rows_step_ = line_columns_ ? runs_ * run_columns_ * line_step : form_.rows_step;
    pixel_step_ = (one_run ? g.stride_x : 1) * column_step_bytes_;
    tap_step_ = (one_run ? g.dilation_x : run_columns_) * column_step_bytes_;
    const bool joined_rows = tile_width_ == g.out_width && operands_.rows_joined();
    const int64_t pixels = line_.empty() ? kFinishedPixels : kFinishedLinePixels;
    finished_rows_ = joined_rows ? CeilDiv(pixels, g.out_width) : 1;
    columns_bytes_ = runs_ * run_columns_ * (line_columns_ ? dwords * line_step : rows_.column_bytes);
    const int64_t sums = std::max(finished_rows_ * tile_width_ * sum_step_, from_input_ ? kFinishedPixels * kBlock : 0);
    // A panel more, which vectors without gaps reach into.
    scratch_per_thread_ = RoundUp(columns_bytes_ + sums * int64_t{sizeof(int32_t)} + kPanelBytes, 64);
    if (from_input_) tile_width_ = g.out_width;  // RunRows has parts of its own.
    for (const auto& reads : rows_.reads) {
      offsets_.emplace_back();
      for (const int64_t dword : reads) {
        offsets_.back().push_back(along_row_      ? dword * dword_columns * column_step_bytes_
                                  : line_columns_ ? dword * rows_step_
                                                  : form_.Offset(dword));
      }
    }
  }

  // [block][output row with weights of its own][dword][kx][channel of the block][tap of the dword]
  TensorType PackedType() const {
    return {DType::kU8, {blocks_ * block_steps_ * kStepBytes}, std::nullopt, Layout::kRowMajor};
  }
  // Which rows are padding, for weights depend on it where they are joined.
  std::string PaddingName() const {
    const Geometry& g = geometry_;
    return rows_.joins_padding ? absl::StrCat("padding ", g.pad_top, " ", g.in_height, " ") : "";
  }
  Tensor Packed(const int8_t* weight) const {
    const Geometry& g = geometry_;
    Tensor packed(PackedType());
    for (int64_t c = 0, block = 0; c < g.out_channels; ++c) {
      if (block + 1 < blocks_ && c == FirstChannel(block + 1)) ++block;
      uint8_t* to = packed.data<uint8_t>() + block * block_steps_ * kStepBytes;
      to += (c - FirstChannel(block)) * kDwordBytes;
      const int8_t* kernel = weight + c * g.group_in_channels() * g.kernel_height * g.kernel_width;
      for (int64_t row = 0; row < weight_rows_; ++row) {
        for (const int64_t dword : rows_.reads[row]) {
          for (int64_t kx = 0; kx < taps_; ++kx, to += kStepBytes) PackDword(kernel + kx, row, dword, to);
        }
      }
    }
    return packed;
  }

  // The taps of a dword that an output row has; the others stay 0. `kernel`: of one output channel, from a column on.
  void PackDword(const int8_t* kernel, int64_t row, int64_t dword, uint8_t* to) const {
    const Geometry& g = geometry_;
    const int64_t elements = form_.rows * form_.channels, bytes = kDwordBytes / elements;
    for (int64_t i = 0; i < elements; ++i, to += bytes) {
      if (along_row_) {
        const int64_t kx = dword * form_.rows + i;
        const int16_t w = kx < g.kernel_width ? kernel[kx] : 0;
        std::memcpy(to, &w, bytes);
        continue;
      }
      const int64_t input = dword / form_.per_rows * form_.rows + i % form_.rows;
      const int64_t channel = dword % form_.per_rows * form_.channels + i / form_.rows;
      int16_t w = 0;
      for (int64_t ky = 0; ky < g.kernel_height; ++ky) {
        if (rows_.taps[row][ky] == input) w += kernel[(channel * g.kernel_height + ky) * g.kernel_width];
      }
      std::memcpy(to, &w, bytes);  // Little-endian.
    }
  }

  // Some rows of one image, of one block of channels or of all.
  void RunTask(const Arguments& arguments, int64_t task, uint8_t* scratch) const {
    const Geometry& g = geometry_;
    const int64_t block_tasks = blocks_ / task_blocks_, part = task / block_tasks % row_parts_;
    const int64_t first_block = task % block_tasks;
    Tile tile;
    tile.image = task / block_tasks / row_parts_;
    tile.first_row = row_groups_ * part / row_parts_ * rows_.count;
    tile.end_row = std::min<int64_t>(row_groups_ * (part + 1) / row_parts_ * rows_.count, g.out_height);
    tile.columns = scratch;
    tile.sums = reinterpret_cast<int32_t*>(scratch + columns_bytes_);
    for (tile.x = 0; tile.x < g.out_width; tile.x += tile_width_) {
      tile.width = std::min<int64_t>(tile_width_, g.out_width - tile.x);
      for (tile.block = first_block; tile.block < first_block + task_blocks_; ++tile.block) {
        from_input_ ? RunRows(arguments, tile) : RunTile(arguments, tile);
      }
    }
  }

  struct Tile {
    int64_t image, block;
    int64_t first_row, end_row, x, width;  // All in outputs.
    uint8_t* columns;
    int32_t* sums;
  };

  void RunRows(const Arguments& arguments, const Tile& tile) const {
    for (int64_t y = tile.first_row; y < tile.end_row; ++y) RunRow(arguments, tile, y);
  }

  void RunRow(const Arguments& arguments, Tile tile, int64_t y) const {
    const Geometry& g = geometry_;
    const uint8_t* input = static_cast<const uint8_t*>(arguments.input) + FirstChannel(tile.block);
    InputRows rows = {};
    rows.count = g.kernel_height;
    for (int ky = 0; ky < g.kernel_height; ++ky) {
      const int64_t in_y = y * g.stride_y - g.pad_top + int64_t{ky} * g.dilation_y;
      if (in_y >= 0 && in_y < g.in_height) rows.rows[ky] = input + operands_.input.Offset(tile.image, in_y, 0);
    }
    rows.pixel_bytes = operands_.input.pixel_bytes;
    rows.width = g.in_width;
    rows.stride = g.stride_x;
    rows.padding = padding_.data<uint8_t>();
    rows.weight = weight_->data<uint8_t>() + tile.block * block_steps_ * kStepBytes;
    rows.channels = Channels(tile.block);
    rows.group_channels = g.group_in_channels();
    rows.sums = codes_from_input_ ? nullptr : tile.sums;
    const int64_t parts = codes_from_input_ ? 1 : CeilDiv(g.out_width, kFinishedPixels);
    for (int64_t part = 0; part < parts; ++part) {
      tile.x = g.out_width * part / parts;
      tile.width = rows.pixels = g.out_width * (part + 1) / parts - tile.x;
      rows.first_x = static_cast<int>(tile.x) * g.stride_x - g.pad_left;
      loops_.multiply_input(rows, constants_.stage(), To(arguments, tile, y, 0, rows.channels));
      if (!codes_from_input_) Finish(arguments, tile, y, 1);
    }
  }

  void RunTile(const Arguments& arguments, const Tile& tile) const {
    Product product;
    product.columns = tile.columns;
    product.pixel_step = pixel_step_;
    product.tap_step = tap_step_;
    product.taps = taps_;
    product.pixels = tile.width;
    product.channels = Channels(tile.block);
    product.group_channels = geometry_.group_in_channels();
    int64_t unfinished = 0;
    if (!along_row_) InterleavePadding(tile);
    for (int64_t y = tile.first_row; y < tile.end_row; y += rows_.count) {
      along_row_ ? InterleaveRow(arguments, tile, y) : InterleaveImage(arguments, tile, y);
      product.weight = weight_->data<uint8_t>() + tile.block * block_steps_ * kStepBytes;
      for (int64_t row = 0; row < std::min<int64_t>(rows_.count, tile.end_row - y); ++row) {
        product.offsets = offsets_[row].data();
        product.runs = static_cast<int64_t>(offsets_[row].size());
        const int64_t first = y + row - unfinished;
        product.sums = tile.sums + unfinished * tile.width * sum_step_;
        // Of tall kernels some rows only: the next sums do not follow those before.
        const bool codes = fused_ && loops_.multiply_codes(product, constants_.stage(),
                                                           To(arguments, tile, y + row, 0, product.channels));
        if (!codes) {
          sum_step_ == kBlock ? loops_.multiply(product) : loops_.multiply_line(product);
          ++unfinished;
        }
        if (unfinished > 0 && (codes || unfinished == finished_rows_ || y + row + 1 == tile.end_row)) {
          Finish(arguments, tile, first, unfinished);
          unfinished = 0;
        }
        if (weight_rows_ > 1) product.weight += product.runs * product.taps * kStepBytes;
      }
    }
  }

  // The tile's part of a row, some channels of the block.
  Destination To(const Arguments& arguments, const Tile& tile, int64_t row, int channel, int channels) const {
    const int64_t first = FirstChannel(tile.block) + channel;
    Destination to = operands_.To(arguments, tile.image, row, tile.x, first);
    to.channel = static_cast<int>(first);
    to.channels = channels;
    return to;
  }

  void Finish(const Arguments& arguments, const Tile& tile, int64_t row, int64_t rows) const {
    if (!line_.empty()) return FinishLine(To(arguments, tile, row, 0, 0), tile.sums, rows * tile.width * sum_step_);
    const int channels = Channels(tile.block), together = std::min(finished_channels_, channels);
    for (int done = 0; done < channels; done += together) {
      // The last may begin among those before.
      const int channel = std::min(done, channels - together);
      finish_(constants_.stage(), To(arguments, tile, row, channel, together), tile.sums + channel, sum_step_,
              static_cast<int>(rows * tile.width));
    }
  }

  // The panels with the same constants at once, and at the end what is no panel.
  void FinishLine(Destination to, const int32_t* sums, int64_t values) const {
    const int64_t lanes = static_cast<int64_t>(line_.bias.size()), last = values / kPanel * kPanel;
    to.pixel_stride = to.residual_pixel_stride = lanes;
    const auto finish = [&](int64_t first, int64_t channels, int64_t pixels) {
      Destination panel = to;
      panel.output = static_cast<uint8_t*>(to.output) + first * operands_.output_bytes;
      if (to.residual != nullptr) panel.residual += first;
      panel.channel = static_cast<int>(first % lanes);
      panel.channels = static_cast<int>(channels);
      finish_(line_.stage, panel, sums + first, lanes, static_cast<int>(pixels));
    };
    for (int64_t first = 0; first < std::min(lanes, last); first += kPanel) {
      finish(first, kPanel, CeilDiv(last - first, lanes));
    }
    if (last < values) finish(last, values - last, 1);
  }

  // Columns [begin, end) of a run lie inside the image.
  struct Inside {
    int64_t x;  // Where the run's first column is in the input.
    int64_t begin, end;
  };
  Inside InsideOf(const Tile& tile, int64_t run) const {
    const Geometry& g = geometry_;
    Inside inside;
    inside.x = tile.x * g.stride_x - g.pad_left + run * g.dilation_x;
    inside.begin = std::min(run_columns_, inside.x < 0 ? CeilDiv(-inside.x, column_step_) : 0);
    inside.end = std::clamp(CeilDiv(g.in_width - inside.x, column_step_), inside.begin, run_columns_);
    return inside;
  }

  Columns ColumnsFor(const Tile& tile) const {
    Columns columns = {};
    columns.channels = Channels(tile.block);
    columns.group_channels = geometry_.group_in_channels();
    columns.flip = constants_.input_flip();
    columns.to_step = column_step_bytes_;
    std::fill(std::begin(columns.rows), std::end(columns.rows), padding_.data<uint8_t>());
    return columns;
  }

  // A line is one column.
  void Interleave(const Columns& columns) const {
    if (!line_columns_) return loops_.interleave(columns);
    if (columns.count == 0) return;
    Columns line = columns;
    line.channels *= static_cast<int>(columns.count);
    line.count = 1;
    loops_.interleave(line);
  }

  // The columns beside the image, which are the same for all rows.
  void InterleavePadding(const Tile& tile) const {
    Columns columns = ColumnsFor(tile);
    for (int64_t run = 0; run < runs_; ++run) {
      const Inside inside = InsideOf(tile, run);
      for (int64_t offset = 0; offset < rows_.column_bytes; offset += form_.rows_step) {
        uint8_t* to = tile.columns + run * run_columns_ * columns.to_step + offset / form_.rows_step * rows_step_;
        columns.to = to;
        columns.count = inside.begin;
        Interleave(columns);
        columns.to = to + inside.end * columns.to_step;
        columns.count = run_columns_ - inside.end;
        Interleave(columns);
      }
    }
  }

  // The columns inside the image, for the output rows from out_y on.
  void InterleaveImage(const Arguments& arguments, const Tile& tile, int64_t out_y) const {
    const Geometry& g = geometry_;
    const uint8_t* input = static_cast<const uint8_t*>(arguments.input) + FirstChannel(tile.block);
    const int64_t first_y = out_y * g.stride_y - g.pad_top, inputs = static_cast<int64_t>(rows_.inputs.size());
    Columns columns = ColumnsFor(tile);
    for (int64_t run = 0; run < runs_; ++run) {
      const Inside inside = InsideOf(tile, run);
      columns.count = inside.end - inside.begin;
      if (columns.count == 0) continue;
      const int64_t x = inside.x + inside.begin * column_step_;
      for (int64_t row = 0; row < inputs; row += form_.rows) {
        for (int64_t i = 0; i < form_.rows; ++i) {
          // The weights of a row that is missing are 0.
          const int64_t y = first_y + rows_.inputs[std::min(row + i, inputs - 1)];
          const bool exists = y >= 0 && y < g.in_height;
          columns.rows[i] = exists ? input + operands_.input.Offset(tile.image, y, x) : padding_.data<uint8_t>();
          columns.steps[i] = exists ? column_step_ * operands_.input.pixel_bytes : 0;
        }
        columns.to =
            tile.columns + (run * run_columns_ + inside.begin) * columns.to_step + row / form_.rows * rows_step_;
        Interleave(columns);
      }
    }
  }

  // Columns of taps of one row, each of which reaches the borders of the image by itself.
  void InterleaveRow(const Arguments& arguments, const Tile& tile, int64_t out_y) const {
    const Geometry& g = geometry_;
    const uint8_t* input = static_cast<const uint8_t*>(arguments.input) + FirstChannel(tile.block);
    const int64_t y = out_y * g.stride_y - g.pad_top;
    Columns columns = ColumnsFor(tile);
    for (int64_t begin = 0, end; begin < run_columns_; begin = end) {
      end = run_columns_;
      for (int64_t i = 0; i < form_.rows; ++i) {
        const int64_t x = tile.x * g.stride_x - g.pad_left + begin + i * g.dilation_x;
        const bool inside = y >= 0 && y < g.in_height && x >= 0 && x < g.in_width;
        if (x < g.in_width) end = std::min(end, begin + (x < 0 ? -x : g.in_width - x));
        columns.rows[i] = inside ? input + operands_.input.Offset(tile.image, y, x) : padding_.data<uint8_t>();
        columns.steps[i] = inside ? operands_.input.pixel_bytes : 0;
      }
      columns.count = end - begin;
      columns.to = tile.columns + begin * columns.to_step;
      Interleave(columns);
    }
  }

  const Geometry geometry_;
  const Loops loops_;
  FinishPixels* const finish_;
  const int finished_channels_;  // At once.
  const OutputConstants constants_;
  const Operands operands_;
  const DwordForm form_;
  const RowPlan rows_;
  const bool along_row_;       // See IsAlongRow.
  const int taps_;             // Of a dword that an output reads, in columns.
  const int64_t weight_rows_;  // Output rows with weights of their own: where dwords are of one row, all have the same.
  const int threads_;
  Tensor padding_;
  int64_t blocks_, block_steps_ = 0;  // Channels' blocks; taps' dwords in each, with weights of their own.
  int64_t last_moves_ = 0;            // A last block of less than a panel is slow without masks: it has one more then.
  int64_t row_groups_, row_parts_;
  int64_t task_blocks_;                    // Of a task: all or one.
  int64_t tile_width_;                     // Outputs of a row.
  int64_t runs_, run_columns_;             // Runs of interleaved columns.
  int64_t column_step_;                    // In the input.
  int64_t column_step_bytes_, rows_step_;  // From column to column, and to the dwords of other rows.
  int64_t pixel_step_, tap_step_, columns_bytes_;
  int64_t finished_rows_;
  bool line_columns_;  // Columns follow each other without a gap.
  int64_t sum_step_;   // From pixel to pixel.
  // Results are a line of pixels of so many lanes; empty: they are not.
  struct Line {
    bool empty() const { return bias.empty(); }
    int64_t bytes() const {
      return static_cast<int64_t>(bias.size() + multiplier.size() + float_bias.size() + 2 * function_offset.size()) * 4;
    }

    std::vector<int32_t> bias;
    std::vector<float> multiplier, float_bias, function_multiplier, function_offset;
    OutputStage stage;
  } line_;
  bool fused_;                                 // Sums become codes at once.
  bool from_input_;                            // Nothing is interleaved.
  bool codes_from_input_;                      // And sums become codes at once.
  std::vector<std::vector<int64_t>> offsets_;  // Where the dwords lie that each output row reads.
  int64_t scratch_per_thread_;
};

}  // namespace

bool Supports(const Problem& problem) {
  const Geometry& g = problem.geometry;
  return g.groups == g.in_channels && g.out_channels == g.in_channels && problem.by_rows();
}

bool SupportsSmallGroups(const Problem& problem) {
  const Geometry& g = problem.geometry;
  const int channels = g.group_in_channels();
  return (channels == 4 || channels == 8 || channels == 16) && g.group_out_channels() == channels && g.groups > 1 &&
         problem.by_rows();
}

std::unique_ptr<Algorithm> Make(const Problem& problem, const Loops& loops, const direct::Loops& direct) {
  return std::make_unique<Depthwise>(problem, loops, direct);
}

}  // namespace fuselage::int8::conv2d::depthwise
