// Direct convolution: no im2col. The input rows that a block of output rows needs are copied once, with their padding,
// as the elements that the instruction set multiplies. In NHWC the taps of a kernel row lie next to each other there,
// so each kernel row is one contiguous run of dwords (one per tap where dilated), and consecutive output pixels start
// at a constant distance: a matrix product whose left operand has overlapping rows.
#include "kernels/int8/conv2d/direct/direct.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/base/tensor.h"
#include "kernels/core/multiply/pairs.h"
#include "kernels/int8/conv2d/core/operands.h"
#include "kernels/int8/conv2d/core/output_constants.h"

namespace fuselage::int8::conv2d::direct {
namespace {

// What the copied rows and the accumulators of a block may take: they share the second-level cache with the weights,
// and the accumulators are read and written once per chunk of the depth.
constexpr int64_t kMaxRowsBytes = 160 << 10;  // Of wider rows a block has a part.
constexpr int64_t kMaxAccumulatorBytes = 48 << 10;
// Sums of so many pixels at least become codes at a time, from the first-level cache.
constexpr int64_t kFinishedPixels = 8 * kMaxRows;

class Direct : public Algorithm {
 public:
  [[gnu::cold]] Direct(const Problem& problem, const Loops& loops)
      : geometry_(problem.geometry),
        loops_(loops),
        constants_(problem, loops.element_bytes == 2 ? CodeForm::kSigned : CodeForm::kUnsigned),
        operands_(problem) {
    const Geometry& g = geometry_;
    in_place_ = g.kernel_height == 1 && g.kernel_width == 1 && g.stride_y == 1 && g.stride_x == 1 &&
                g.out_height == g.in_height && g.out_width == g.in_width && g.groups == 1 && loops.element_bytes == 1 &&
                g.in_channels % kDwordBytes == 0 && constants_.input_flip() == 0 && operands_.input.placement.even();
    const int32_t zero_point = problem.input_zero_point;
    pad_ = static_cast<uint8_t>(static_cast<uint8_t>(zero_point) ^ constants_.input_flip());
    PlanRows();
    PlanDepth(problem.pairs());
    PlanTasks(problem.threads);
    SetWeight(problem,
              absl::StrCat("conv2d ", geometry_.groups, " ", depth_, " ", run_dwords_, " ", loops.element_bytes, " ",
                           loops.multiply_few != nullptr ? "few " : "", ToString(PackedType())),
              [&] { return Packed(problem.weight); });
  }

  int64_t scratch_bytes() const override { return scratch_per_thread_ * threads_; }
  int64_t constant_bytes() const override { return constants_.bytes(); }

  void Run(const Arguments& arguments, const kernels::RunContext& context) const override {
    const int64_t tasks = geometry_.batch * row_blocks_ * column_blocks_ * panel_splits_;
    context.parallel->For(static_cast<int>(tasks), [&](int task, int thread) {
      RunTask(arguments, task, static_cast<uint8_t*>(context.scratch.data) + thread * scratch_per_thread_);
    });
  }

 private:
  int64_t panels() const { return CeilDiv(geometry_.group_out_channels(), kPanel); }
  int64_t wide_panels() const { return CeilDiv(panels(), loops_.max_panels); }  // Of a group.

  // The rows that are multiplied: [row][column][channel of the group], copied or in place. Where the kernel has one row
  // (or column), only the rows (columns) under an output are copied and the stride in the copy is 1.
  void PlanRows() {
    const Geometry& g = geometry_;
    row_step_ = g.kernel_height == 1 ? 1 : g.stride_y;
    column_step_ = g.kernel_width == 1 ? 1 : g.stride_x;
    tap_bytes_ = int64_t{g.group_in_channels()} * loops_.element_bytes;
    pixel_bytes_ = in_place_ ? operands_.input.pixel_bytes : tap_bytes_;
    one_line_ = in_place_ || (g.kernel_height == 1 && g.kernel_width == 1 && operands_.rows_joined());
    block_width_ = g.out_width;
    const int64_t most_columns = kMaxRowsBytes / RowsFor(1) / pixel_bytes_;
    if (!in_place_ && ColumnsFor(block_width_) > most_columns) {
      one_line_ = false;
      const int64_t widest = (most_columns - ColumnsFor(1)) / column_step_ + 1;
      block_width_ = std::max<int64_t>(widest / kFinishedPixels, 1) * kFinishedPixels;
    }
    column_blocks_ = CeilDiv(g.out_width, block_width_);
    block_width_ = std::min<int64_t>(RoundUp(CeilDiv(g.out_width, column_blocks_), kMaxRows), g.out_width);
    column_blocks_ = CeilDiv(g.out_width, block_width_);
    row_bytes_ = ColumnsFor(block_width_) * pixel_bytes_;
    if (!one_line_) row_bytes_ = RoundUp(row_bytes_, 64);
  }

  int64_t ColumnsFor(int64_t out_columns) const {
    return (out_columns - 1) * column_step_ + int64_t{geometry_.kernel_width - 1} * geometry_.dilation_x + 1;
  }

  int64_t RowsFor(int64_t out_rows) const {
    return (out_rows - 1) * row_step_ + int64_t{geometry_.kernel_height - 1} * geometry_.dilation_y + 1;
  }

  // A run of contiguous dwords for each kernel row; for each tap where dilated.
  void PlanDepth(kernels::Pairs pairs) {
    const Geometry& g = geometry_;
    const bool contiguous = g.dilation_x == 1;
    run_dwords_ = CeilDiv(contiguous ? g.kernel_width * tap_bytes_ : tap_bytes_, kDwordBytes);
    for (int ky = 0; ky < g.kernel_height; ++ky) {
      for (int kx = 0; kx < (contiguous ? 1 : g.kernel_width); ++kx) {
        const int64_t run = int64_t{ky} * g.dilation_y * row_bytes_ + int64_t{kx} * g.dilation_x * pixel_bytes_;
        for (int64_t dword = 0; dword < run_dwords_; ++dword) offsets_.push_back(run + dword * kDwordBytes);
      }
    }
    depth_ = static_cast<int64_t>(offsets_.size());
    pair_panel_ = kernels::PairPanel::Of(depth_, pairs);
    const bool grouped = loops_.group != nullptr;
    chunk_depth_ = grouped ? pair_panel_.chunk_steps() : CeilDiv(depth_, CeilDiv(depth_, loops_.chunk_depth));
    chunk_bytes_ = grouped ? pair_panel_.chunk_bytes() : chunk_depth_ * kPanelBytes;
    panel_bytes_ = grouped ? pair_panel_.bytes() : depth_ * kPanelBytes;
  }

  void PlanTasks(int threads) {
    const Geometry& g = geometry_;
    threads_ = threads;
    accumulator_stride_ = kPanel * std::min<int64_t>(loops_.max_panels, panels());
    block_rows_ = 1;
    while (block_rows_ < g.out_height && RowsFor(block_rows_ + 1) * row_bytes_ <= kMaxRowsBytes &&
           (block_rows_ + 1) * block_width_ * kPanelBytes <= kMaxAccumulatorBytes) {
      ++block_rows_;
    }
    row_blocks_ = CeilDiv(g.out_height, block_rows_);
    // Threads share out the output channels where the weights outweigh the input or rows are too few, else the rows.
    const int64_t input_bytes = int64_t{1} * g.in_height * g.in_width * g.in_channels;
    const int64_t weight_bytes = int64_t{1} * g.out_channels * depth_ * kDwordBytes;
    panel_splits_ = 1;
    if (threads > 1 && g.batch < threads && (weight_bytes > input_bytes || g.out_height * column_blocks_ < threads)) {
      panel_splits_ = std::min<int64_t>(threads, g.groups * wide_panels());
    } else if (threads > 1) {
      row_blocks_ = std::min<int64_t>(RoundUp(row_blocks_, threads), g.out_height);
    }
    block_rows_ = CeilDiv(g.out_height, row_blocks_);
    row_blocks_ = CeilDiv(g.out_height, block_rows_);
    PlanPixels();
    // Such a call stores a line.
    whole_lines_ = loops_.multiply_codes != nullptr && !constants_.stage().is_float &&
                   (one_line_ ? operands_.rows_joined() : pixel_offsets_.empty());
    // The last dword of a run may reach past the last row.
    rows_bytes_ = in_place_ ? 0 : RoundUp(RowsFor(block_rows_) * row_bytes_ + kDwordBytes, 64);
    scratch_per_thread_ =
        rows_bytes_ + RoundUp(block_rows_ * block_width_ * accumulator_stride_ * int64_t{sizeof(int32_t)}, 64);
  }

  // Rows of outputs that fill the products badly are taken as one.
  void PlanPixels() {
    const int64_t width = geometry_.out_width, pixels = block_rows_ * width;
    if (one_line_ || column_blocks_ > 1) return;
    if (CeilDiv(pixels, kMaxRows) > loops_.scattered_tiles * block_rows_ * CeilDiv(width, kMaxRows)) return;
    for (int64_t pixel = 0; pixel < pixels; ++pixel) {
      pixel_offsets_.push_back(pixel / width * row_step_ * row_bytes_ + pixel % width * column_step_ * pixel_bytes_);
    }
  }

  // [group][panel][dword][16][elements of a dword]; chunks of those if grouped
  TensorType PackedType() const {
    return {DType::kU8, {geometry_.groups * panels() * panel_bytes_}, std::nullopt, Layout::kRowMajor};
  }
  [[gnu::cold]] Tensor Packed(const int8_t* weight) const {
    const Geometry& g = geometry_;
    const int64_t channels = g.group_in_channels(), taps = int64_t{1} * g.kernel_height * g.kernel_width;
    const int64_t runs = depth_ / run_dwords_, taps_per_run = taps / runs;
    const int64_t elements = kDwordBytes / loops_.element_bytes;
    Tensor packed(PackedType());
    for (int64_t oc = 0; oc < g.out_channels; ++oc) {
      const int64_t group = oc / g.group_out_channels(), in_group = oc % g.group_out_channels();
      uint8_t* panel = packed.data<uint8_t>() + (group * panels() + in_group / kPanel) * panel_bytes_;
      for (int64_t tap = 0; tap < taps; ++tap) {
        for (int64_t c = 0; c < channels; ++c) {
          const int8_t w = weight[(oc * channels + c) * taps + tap];
          const int64_t element = tap % taps_per_run * channels + c;
          const int64_t dword = tap / taps_per_run * run_dwords_ + element / elements;
          const int64_t at =
              loops_.multiply_few != nullptr ? in_group * depth_ + dword : dword * kPanel + in_group % kPanel;
          uint8_t* to = panel + at * kDwordBytes + element % elements * loops_.element_bytes;
          const int16_t wide = w;
          loops_.element_bytes == 2 ? std::memcpy(to, &wide, sizeof(wide)) : std::memcpy(to, &w, sizeof(w));
        }
      }
    }
    for (int64_t panel = 0; loops_.group != nullptr && panel < g.groups * panels(); ++panel) {
      loops_.group(pair_panel_, packed.data<uint8_t>() + panel * panel_bytes_);
    }
    return packed;
  }

  // Of outputs.
  struct Block {
    int64_t y, x, rows, width;
  };

  void RunTask(const Arguments& arguments, int64_t task, uint8_t* scratch) const {
    const Geometry& g = geometry_;
    const int64_t split = task % panel_splits_, block = task / panel_splits_, row_block = block / column_blocks_;
    const int64_t image = row_block / row_blocks_;
    Block out;
    out.y = row_block % row_blocks_ * block_rows_;
    out.x = block % column_blocks_ * block_width_;
    out.rows = std::min<int64_t>(block_rows_, g.out_height - out.y);
    out.width = std::min<int64_t>(block_width_, g.out_width - out.x);
    const int64_t all = g.groups * wide_panels(), begin = all * split / panel_splits_,
                  end = all * (split + 1) / panel_splits_;
    int32_t* accumulators = reinterpret_cast<int32_t*>(scratch + rows_bytes_);
    const uint8_t* input = static_cast<const uint8_t*>(arguments.input);
    const uint8_t* copied = in_place_ ? input + operands_.input.Offset(image, out.y, 0) : scratch;
    int64_t copied_group = -1;
    for (int64_t wide = begin; wide < end; ++wide) {
      const int64_t group = wide / wide_panels(), panel = wide % wide_panels() * loops_.max_panels;
      if (!in_place_ && group != copied_group) CopyRows(input, image, group, out, scratch);
      copied_group = group;
      const int64_t count = std::min<int64_t>(loops_.max_panels, panels() - panel);
      const int64_t channel = group * g.group_out_channels() + panel * kPanel;
      Destination to = operands_.To(arguments, image, out.y, out.x, channel);
      to.channel = static_cast<int>((group * panels() + panel) * kPanel);
      to.channels = static_cast<int>(std::min<int64_t>(count * kPanel, g.group_out_channels() - panel * kPanel));
      for (int64_t dword = 0; dword < depth_; dword += chunk_depth_) {
        const bool last = dword + chunk_depth_ >= depth_, last_of_group = panel + count == panels();
        const uint8_t* next = !last            ? Weight(group, panel, dword + chunk_depth_)
                              : wide + 1 < end ? Weight(group + last_of_group, last_of_group ? 0 : panel + count, 0)
                                               : nullptr;
        MultiplyRows(copied, Weight(group, panel, dword), next, count, dword, out, accumulators, to, last);
      }
    }
  }

  // Sums of `count` pixels of a block of this width, from the one with index `first` on, to outputs.
  void Finish(const Destination& to, int64_t width, int64_t first, int64_t count, const int32_t* sums) const {
    const bool joined = column_blocks_ == 1 && operands_.rows_joined();
    for (int64_t done = 0, run; done < count; done += run) {
      const int64_t row = (first + done) / width, x = (first + done) % width;
      run = joined ? count : std::min(count - done, width - x);
      loops_.finish(constants_.stage(), operands_.At(to, row, x), sums + done * accumulator_stride_,
                    accumulator_stride_, static_cast<int>(run));
    }
  }

  void Fill(uint8_t* to, int64_t elements) const {
    if (loops_.element_bytes == 1) {
      std::memset(to, pad_, elements);
    } else {
      const int16_t value = static_cast<int8_t>(pad_);
      int16_t* out = reinterpret_cast<int16_t*>(to);
      std::fill(out, out + elements, value);
    }
  }

  void CopyRows(const uint8_t* input, int64_t image, int64_t group, const Block& out, uint8_t* to) const {
    const Geometry& g = geometry_;
    const int64_t channels = g.group_in_channels();
    const int64_t source_step_y = g.kernel_height == 1 ? g.stride_y : 1;
    const int64_t source_step_x = g.kernel_width == 1 ? g.stride_x : 1;
    const int64_t first_y = out.y * g.stride_y - g.pad_top, first_x = out.x * g.stride_x - g.pad_left;
    const int64_t rows = RowsFor(out.rows), columns = ColumnsFor(out.width);
    // The columns of the copy that lie inside the image.
    const int64_t inside_begin = std::min(columns, CeilDiv(std::max<int64_t>(-first_x, 0), source_step_x));
    const int64_t inside_end =
        std::max(inside_begin, std::min(columns, CeilDiv(std::max<int64_t>(g.in_width - first_x, 0), source_step_x)));
    for (int64_t row = 0; row < rows; ++row, to += row_bytes_) {
      const int64_t y = first_y + row * source_step_y;
      if (y < 0 || y >= g.in_height) {
        Fill(to, columns * channels);
        continue;
      }
      Fill(to, inside_begin * channels);
      const uint8_t* from =
          input + operands_.input.Offset(image, y, first_x + inside_begin * source_step_x) + group * channels;
      uint8_t* inside = to + inside_begin * pixel_bytes_;
      if (operands_.input.pixel_bytes == channels && source_step_x == 1) {
        loops_.load(from, (inside_end - inside_begin) * channels, constants_.input_flip(), inside);
      } else {
        for (int64_t x = inside_begin; x < inside_end; ++x) {
          loops_.load(from, channels, constants_.input_flip(), inside);
          from += source_step_x * operands_.input.pixel_bytes;
          inside += pixel_bytes_;
        }
      }
      Fill(to + inside_end * pixel_bytes_, (columns - inside_end) * channels);
    }
  }

  const uint8_t* Weight(int64_t group, int64_t panel, int64_t dword) const {
    return weight_->data<uint8_t>() + (group * panels() + panel) * panel_bytes_ + dword / chunk_depth_ * chunk_bytes_;
  }

  // One chunk of the depth, whose weights stay in a cache for all rows. `next`: those of the next; the
  // first products each fetch a panel of them. The last chunk's sums go to `to`.
  void MultiplyRows(const uint8_t* rows, const uint8_t* weight, const uint8_t* next, int64_t panel_count,
                    int64_t first_dword, const Block& out, int32_t* accumulators, const Destination& to,
                    bool last) const {
    const Geometry& g = geometry_;
    Multiply m = {};
    m.a_stride = column_step_ * pixel_bytes_;
    m.offsets = offsets_.data() + first_dword;
    m.first_run = run_dwords_ - first_dword % run_dwords_;
    m.run = run_dwords_;
    m.depth = std::min(chunk_depth_, depth_ - first_dword);
    m.b = weight;
    m.b_stride = panel_bytes_;
    m.c_stride = accumulator_stride_;
    m.parts_of_step = pair_panel_.parts_of_step;
    m.panels = static_cast<int>(panel_count);
    m.accumulate = first_dword > 0;
    m.half = to.channels <= kPanel / 2;
    // Scattered pixels are one line, too.
    const bool scattered = !pixel_offsets_.empty();
    const int64_t lines = one_line_ || scattered ? 1 : out.rows, width = out.rows * out.width / lines;
    const bool whole_lines = last && whole_lines_;
    const int64_t tiles = whole_lines ? 1 : CeilDiv(width, kMaxRows), tiles_of_call = loops_.max_rows / kMaxRows;
    for (int64_t row = 0; row < lines; ++row) {
      int64_t first = 0;  // Of the pixels that are not finished.
      for (int64_t tile = 0, x = 0, end; tile < tiles; tile += tiles_of_call, x = end) {
        const int64_t index = row * tiles + tile;
        end = width * std::min(tile + tiles_of_call, tiles) / tiles;
        m.rows = static_cast<int>(end - x);
        m.a = rows + row * row_step_ * row_bytes_ + (scattered ? 0 : x * m.a_stride);
        m.row_offsets = scattered ? pixel_offsets_.data() + x : nullptr;
        m.c = accumulators + (last && !m.accumulate ? x - first : row * width + x) * m.c_stride;
        m.next = next != nullptr && index < panel_count ? next + index * m.b_stride : nullptr;
        if (whole_lines) {
          loops_.multiply_codes(m, constants_.stage(), operands_.At(to, row, 0));
          continue;
        }
        loops_.multiply_few != nullptr ? loops_.multiply_few(m, g.out_channels) : loops_.multiply(m);
        if (!last || (end < first + kFinishedPixels && end < width)) continue;
        Finish(to, out.width, row * width + first, end - first, m.c - (x - first) * m.c_stride);
        first = end;
      }
    }
  }

  const Geometry geometry_;
  const Loops loops_;
  const OutputConstants constants_;
  const Operands operands_;
  uint8_t pad_;  // The zero point in the form that is multiplied.

  int64_t row_step_, column_step_;  // Between consecutive output pixels, in the copy.
  int64_t tap_bytes_, pixel_bytes_, row_bytes_, rows_bytes_;
  int64_t run_dwords_, depth_, chunk_depth_;
  int64_t chunk_bytes_, panel_bytes_;  // Of weights.
  kernels::PairPanel pair_panel_;      // One, if Loops::group makes them.
  std::vector<int64_t> offsets_;       // Where the depth's dwords lie, from an output pixel's first tap.
  int64_t block_rows_, row_blocks_, block_width_, column_blocks_, panel_splits_;
  std::vector<int64_t> pixel_offsets_;  // Where the pixels of a block of rows are in the copy; empty: row by row.
  int64_t accumulator_stride_, scratch_per_thread_;
  int threads_;
  bool in_place_;     // The input's rows are multiplied where they are.
  bool one_line_;     // A block's pixels are one line: they follow each other where they are read and where they are
                      // written.
  bool whole_lines_;  // Loops::multiply_codes does the last chunk.
};

}  // namespace

bool SupportsFew(const Problem& problem) {
  const Geometry& g = problem.geometry;
  return problem.by_rows() && g.out_channels <= kMostFewChannels &&
         (g.groups == 1 || g.in_channels <= kMostFewChannels);
}

bool WorthwhileFew(const Problem& problem, const Loops& loops) {
  const Geometry& g = problem.geometry;
  // Depthwise loops take half as long or less.
  if (g.groups == g.in_channels && g.out_channels == g.in_channels) return false;
  if (g.groups > 1 || g.in_channels == 1) return g.out_channels <= 4;
  constexpr int64_t kSum = 3;  // Takes as long as so many products.
  const int64_t run =
      CeilDiv((g.dilation_x == 1 ? g.kernel_width : 1) * int64_t{g.in_channels} * loops.element_bytes, kDwordBytes);
  const int64_t runs = int64_t{g.kernel_height} * (g.dilation_x == 1 ? 1 : g.kernel_width);
  const int64_t products = g.out_channels * (runs * CeilDiv(run, loops.lanes) + kSum);
  // By panels a step is one vector: AVX2 leaves half a panel out.
  return 10 * products <= (loops.lanes == kPanel ? 7 : 10) * runs * run;
}

std::unique_ptr<Algorithm> Make(const Problem& problem, const Loops& loops) {
  return std::make_unique<Direct>(problem, loops);
}

std::unique_ptr<Algorithm> MakeFew(const Problem& problem, const Loops& loops) {
  Problem dense = problem;
  Geometry& g = dense.geometry;
  const int64_t of_group = g.group_in_channels(), taps = int64_t{1} * g.kernel_height * g.kernel_width;
  std::vector<int8_t> weight(g.groups == 1 ? 0 : g.out_channels * g.in_channels * taps);
  for (int64_t oc = 0; g.groups > 1 && oc < g.out_channels; ++oc) {
    const int64_t first = oc / g.group_out_channels() * of_group;
    std::copy_n(problem.weight + oc * of_group * taps, of_group * taps,
                weight.begin() + (oc * g.in_channels + first) * taps);
  }
  if (g.groups > 1) dense.weight = weight.data();
  g.groups = 1;
  return Make(dense, loops);
}

}  // namespace fuselage::int8::conv2d::direct
