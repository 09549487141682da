// A kernel whose taps often lie outside the input, as those of a dilation that is nearly as large as the image do: sums
// grow tap by tap, of each at the outputs whose input it has there. What is outside is neither copied nor multiplied:
// sums begin with what they would be if all taps were, and where one is not, that leaves them again.
#include "kernels/int8/conv2d/direct/taps.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/base/tensor.h"
#include "kernels/int8/conv2d/core/operands.h"
#include "kernels/int8/conv2d/core/output_constants.h"

namespace fuselage::int8::conv2d::direct {
namespace {

constexpr int64_t kSumsBytes = kPanel * int64_t{sizeof(int32_t)};  // Of a tap and a panel.
constexpr int64_t kMaxAccumulatorBytes = 64 << 10;  // Of a block of rows: they share a cache with the weights.

// a + b * c, modulo 2^32, as products are.
int32_t AddProduct(int32_t a, int32_t b, int32_t c) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b) * static_cast<uint32_t>(c));
}

class Taps final : public Algorithm {
 public:
  [[gnu::cold]] Taps(const Problem& problem, const Loops& loops)
      : geometry_(problem.geometry),
        loops_(loops),
        constants_(problem, loops.element_bytes == 2 ? CodeForm::kSigned : CodeForm::kUnsigned),
        operands_(problem),
        threads_(problem.threads) {
    const Geometry& g = geometry_;
    const auto pad = static_cast<uint8_t>(static_cast<uint8_t>(problem.input_zero_point) ^ constants_.input_flip());
    pad_ = loops.element_bytes == 2 ? static_cast<int8_t>(pad) : pad;
    tap_bytes_ = int64_t{g.group_in_channels()} * loops.element_bytes;
    in_place_ = loops.element_bytes == 1 && tap_bytes_ % kDwordBytes == 0 && constants_.input_flip() == 0;
    pixel_bytes_ = in_place_ ? operands_.input.pixel_bytes : tap_bytes_;
    row_bytes_ = in_place_ ? operands_.input.row_bytes : g.in_width * tap_bytes_;
    const int64_t dwords = CeilDiv(tap_bytes_, kDwordBytes);
    for (int64_t dword = 0; dword < dwords; ++dword) offsets_.push_back(dword * kDwordBytes);
    chunk_ = CeilDiv(dwords, CeilDiv(dwords, loops.chunk_depth));
    accumulator_stride_ = kPanel * std::min<int64_t>(loops.max_panels, panels());
    const int64_t row_sums_bytes = int64_t{g.out_width} * kPanel * loops.max_panels * int64_t{sizeof(int32_t)};
    row_blocks_ = CeilDiv(g.out_height, std::max<int64_t>(1, kMaxAccumulatorBytes / row_sums_bytes));
    block_rows_ = CeilDiv(g.out_height, row_blocks_);
    row_blocks_ = CeilDiv(g.out_height, block_rows_);
    const int64_t blocks = int64_t{g.batch} * row_blocks_;
    panel_splits_ = std::clamp<int64_t>(CeilDiv(threads_, blocks), 1, CeilDiv(panels(), loops.max_panels));
    // The last dword of a tap may reach past the last pixel.
    copy_bytes_ = in_place_ ? 0 : RoundUp(g.in_height * row_bytes_ + kDwordBytes, 64);
    scratch_per_thread_ =
        copy_bytes_ + RoundUp(block_rows_ * g.out_width * accumulator_stride_ * int64_t{sizeof(int32_t)}, 64);
    SetWeight(
        problem,
        absl::StrCat("conv2d taps ", g.groups, " ", dwords, " ", loops.element_bytes, " ", ToString(PackedType())),
        [&] { return Packed(problem.weight); });
  }

  int64_t scratch_bytes() const override { return scratch_per_thread_ * threads_; }
  int64_t constant_bytes() const override { return constants_.bytes(); }

  void Run(const Arguments& arguments, const kernels::RunContext& context) const override {
    context.parallel->For(static_cast<int>(geometry_.batch * row_blocks_ * panel_splits_), [&](int task, int thread) {
      RunTask(arguments, task, static_cast<uint8_t*>(context.scratch.data) + thread * scratch_per_thread_);
    });
  }

 private:
  int64_t panels() const { return CeilDiv(geometry_.group_out_channels(), kPanel); }
  int64_t kernel_taps() const { return int64_t{geometry_.kernel_height} * geometry_.kernel_width; }
  int64_t dwords() const { return static_cast<int64_t>(offsets_.size()); }
  int64_t panel_bytes() const { return kernel_taps() * (dwords() * kPanelBytes + kSumsBytes); }

  // [group][panel], of each [tap][dword][16][elements of a dword] and, as int32, [tap][16]: what the tap's weights add
  // up to.
  TensorType PackedType() const {
    return {DType::kU8, {geometry_.groups * panels() * panel_bytes()}, std::nullopt, Layout::kRowMajor};
  }
  [[gnu::cold]] Tensor Packed(const int8_t* weight) const {
    const Geometry& g = geometry_;
    const int64_t elements = kDwordBytes / loops_.element_bytes;
    Tensor packed(PackedType());
    for (int64_t oc = 0; oc < g.out_channels; ++oc) {
      const int64_t group = oc / g.group_out_channels(), in_group = oc % g.group_out_channels();
      uint8_t* const panel = packed.data<uint8_t>() + (group * panels() + in_group / kPanel) * panel_bytes();
      auto* const tap_sums = const_cast<int32_t*>(TapSums(panel)) + in_group % kPanel;
      for (int64_t c = 0; c < g.group_in_channels(); ++c) {
        for (int64_t tap = 0; tap < kernel_taps(); ++tap, ++weight) {
          const int64_t dword = tap * dwords() + c / elements;
          uint8_t* const to =
              panel + (dword * kPanel + in_group % kPanel) * kDwordBytes + c % elements * loops_.element_bytes;
          const int16_t wide = *weight;
          loops_.element_bytes == 2 ? std::memcpy(to, &wide, sizeof(wide)) : std::memcpy(to, weight, 1);
          tap_sums[tap * kPanel] += wide;
        }
      }
    }
    return packed;
  }

  void RunTask(const Arguments& arguments, int64_t task, uint8_t* scratch) const {
    const Geometry& g = geometry_;
    const int64_t split = task % panel_splits_, block = task / panel_splits_;
    const int64_t image = block / row_blocks_, first_row = block % row_blocks_ * block_rows_;
    const Range rows = {first_row, std::min<int64_t>(g.out_height, first_row + block_rows_)};
    const int64_t wide_panels = CeilDiv(panels(), loops_.max_panels);
    const int64_t begin = wide_panels * split / panel_splits_ * loops_.max_panels;
    const int64_t end = std::min<int64_t>(panels(), wide_panels * (split + 1) / panel_splits_ * loops_.max_panels);
    const uint8_t* const input = static_cast<const uint8_t*>(arguments.input) + operands_.input.Offset(image, 0, 0);
    auto* const sums = reinterpret_cast<int32_t*>(scratch + copy_bytes_);
    for (int64_t group = 0; group < g.groups; ++group) {
      const uint8_t* x = input + group * g.group_in_channels();
      if (!in_place_) {
        Copy(x, scratch);
        x = scratch;
      }
      for (int64_t panel = begin; panel < end; panel += loops_.max_panels) {
        const int64_t count = std::min<int64_t>(loops_.max_panels, end - panel);
        const uint8_t* const weight = weight_->data<uint8_t>() + (group * panels() + panel) * panel_bytes();
        Begin(weight, count, (rows.end - rows.begin) * g.out_width, sums);
        AddTaps(x, weight, count, rows, sums);
        const int64_t channel = group * g.group_out_channels() + panel * kPanel;
        Destination to = operands_.To(arguments, image, first_row, 0, channel);
        to.channel = static_cast<int>((group * panels() + panel) * kPanel);
        to.channels = static_cast<int>(std::min<int64_t>(count * kPanel, g.group_out_channels() - panel * kPanel));
        for (int64_t row = 0; row < rows.end - rows.begin; ++row) {
          loops_.finish(constants_.stage(), operands_.At(to, row, 0), sums + row * g.out_width * accumulator_stride_,
                        accumulator_stride_, g.out_width);
        }
      }
    }
  }

  // A group's channels of an image, as the elements that are multiplied.
  void Copy(const uint8_t* input, uint8_t* to) const {
    for (int64_t y = 0; y < geometry_.in_height; ++y) {
      const uint8_t* from = input + y * operands_.input.row_bytes;
      for (int64_t x = 0; x < geometry_.in_width; ++x, from += operands_.input.pixel_bytes, to += pixel_bytes_) {
        loops_.load(from, geometry_.group_in_channels(), constants_.input_flip(), to);
      }
    }
  }

  const int32_t* TapSums(const uint8_t* panel) const {
    return reinterpret_cast<const int32_t*>(panel + kernel_taps() * dwords() * kPanelBytes);
  }

  // What these outputs' sums would be if all taps were outside.
  void Begin(const uint8_t* weight, int64_t panel_count, int64_t outputs, int32_t* sums) const {
    std::fill_n(sums, accumulator_stride_, 0);
    for (int64_t panel = 0; pad_ != 0 && panel < panel_count; ++panel) {
      const int32_t* const tap_sums = TapSums(weight + panel * panel_bytes());
      for (int64_t i = 0; i < kernel_taps() * kPanel; ++i) {
        int32_t* const sum = sums + panel * kPanel + i % kPanel;
        *sum = AddProduct(*sum, pad_, tap_sums[i]);
      }
    }
    for (int64_t i = 1; i < outputs; ++i) std::copy_n(sums, accumulator_stride_, sums + i * accumulator_stride_);
  }

  // The tap is inside at these outputs of a row.
  void TakeOutside(const uint8_t* weight, int64_t tap, int64_t panel_count, int64_t outputs, int32_t* sums) const {
    for (int64_t panel = 0; pad_ != 0 && panel < panel_count; ++panel) {
      const int32_t* const tap_sums = TapSums(weight + panel * panel_bytes()) + tap * kPanel;
      for (int64_t i = 0; i < outputs; ++i) {
        int32_t* const sum = sums + i * accumulator_stride_ + panel * kPanel;
        for (int64_t c = 0; c < kPanel; ++c) sum[c] = AddProduct(sum[c], -pad_, tap_sums[c]);
      }
    }
  }

  // To the sums of these rows of outputs.
  void AddTaps(const uint8_t* input, const uint8_t* weight, int64_t panel_count, Range rows, int32_t* sums) const {
    const Geometry& g = geometry_;
    Multiply m = {};
    m.a_stride = g.stride_x * pixel_bytes_;
    m.b_stride = panel_bytes();
    m.c_stride = accumulator_stride_;
    m.panels = static_cast<int>(panel_count);
    m.accumulate = true;
    const uint8_t* chunk = weight;
    for (int ky = 0; ky < g.kernel_height; ++ky) {
      const Range reached = g.RowsOfTap(ky);
      const int64_t first = std::max(rows.begin, reached.begin), last = std::min(rows.end, reached.end);
      for (int kx = 0; kx < g.kernel_width; ++kx) {
        const Range columns = g.ColumnsOfTap(kx);
        for (int64_t dword = 0; dword < dwords(); dword += m.depth, chunk += m.depth * kPanelBytes) {
          m.offsets = offsets_.data() + dword;
          m.depth = std::min(chunk_, dwords() - dword);
          m.b = chunk;
          int64_t fetched = 0;  // Panels of the weights that come next.
          for (int64_t row = first; row < last; ++row) {
            const int64_t y = row * g.stride_y - g.pad_top + int64_t{ky} * g.dilation_y;
            const int64_t x = columns.begin * g.stride_x - g.pad_left + int64_t{kx} * g.dilation_x;
            m.a = input + y * row_bytes_ + x * pixel_bytes_;
            m.c = sums + ((row - rows.begin) * g.out_width + columns.begin) * m.c_stride;
            if (dword == 0) {
              TakeOutside(weight, ky * g.kernel_width + kx, panel_count, columns.end - columns.begin, m.c);
            }
            for (int64_t column = columns.begin, tiles; column < columns.end; column += m.rows) {
              tiles = CeilDiv(columns.end - column, kMaxRows);
              m.rows = static_cast<int>((columns.end - column) / tiles);
              m.next = fetched < panel_count ? chunk + m.depth * kPanelBytes + fetched++ * m.b_stride : nullptr;
              loops_.multiply(m);
              m.a = static_cast<const uint8_t*>(m.a) + m.rows * m.a_stride;
              m.c += m.rows * m.c_stride;
            }
          }
        }
      }
    }
  }

  const Geometry geometry_;
  const Loops loops_;
  const OutputConstants constants_;
  const Operands operands_;
  const int threads_;
  bool in_place_;                                // The input is multiplied where it is.
  int32_t pad_;                                  // The zero point, as it is multiplied.
  int64_t tap_bytes_, pixel_bytes_, row_bytes_;  // As it is multiplied.
  std::vector<int64_t> offsets_;                 // Of a tap's dwords.
  int64_t chunk_;                                // Dwords.
  int64_t block_rows_, row_blocks_, panel_splits_;
  int64_t accumulator_stride_, copy_bytes_, scratch_per_thread_;
};

}  // namespace

bool WorthwhileTaps(const Problem& problem) {
  constexpr int64_t kSums = 64;  // An output's are read and written in the time of products by so many channels.
  const Geometry& g = problem.geometry;
  return g.taps_inside() * (g.group_in_channels() + kSums) <= g.taps() * g.group_in_channels();
}

std::unique_ptr<Algorithm> MakeTaps(const Problem& problem, const Loops& loops) {
  return std::make_unique<Taps>(problem, loops);
}

}  // namespace fuselage::int8::conv2d::direct
