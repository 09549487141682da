#include "kernels/int8/max_pool2d/max_pool2d.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "kernels/core/requantize.h"

namespace fuselage::int8::max_pool2d {
namespace {

using kernels::Isa;
using kernels::KernelDesc;

constexpr Variant kVariants[] = {
    {"scalar", Isa::kScalar, nullptr, scalar::Run},
    {"avx2", Isa::kAvx2, nullptr, avx2::Run},
    {"avx512_vnni", Isa::kAvx512Vnni, nullptr, avx512_vnni::Run},
};

constexpr int64_t kBufferBytes = 8 << 10;  // Of MaxRows: a part of the first-level cache.
constexpr int64_t kGrainBytes = 1 << 15;   // A thread gets at least so many bytes of input.

class MaxPool2d : public kernels::UnaryKernel {
 public:
  MaxPool2d(const KernelDesc& desc, const Params& params, const Variant& variant)
      : UnaryKernel(desc), params_(params), run_(variant.run) {
    set_variant(variant.name);
    const kernels::PoolWindow& w = params.window;
    const int64_t taps = w.axes[0].kernel * w.axes[1].kernel;
    if (!desc.output_placement.dense()) {
      placed_output_.emplace(desc.output().shape, desc.output_placement);
      padding_ = static_cast<uint8_t>(desc.output().quant->zero_point());
    }
    grain_rows_ = std::max<int64_t>(1, kGrainBytes / std::max<int64_t>(1, w.axes[1].out * w.channels * taps));
  }

 private:
  void ComputeUnary(const void* x, void* y, const kernels::RunContext& context) const override {
    const int64_t rows = params_.window.batch * params_.window.axes[0].out;
    kernels::ForRanges(*context.parallel, rows, grain_rows_, [&](int64_t begin, int64_t end) {
      run_(params_, static_cast<const uint8_t*>(x), static_cast<uint8_t*>(y), begin, end);
      if (placed_output_) FillHalo(static_cast<uint8_t*>(y), begin, end);
    });
  }

  // Around rows [begin, end) of the batch * height rows.
  void FillHalo(uint8_t* y, int64_t begin, int64_t end) const {
    while (begin < end) {
      const int64_t height = placed_output_->height, n = begin / height;
      const int64_t stop = std::min(end, (n + 1) * height);
      placed_output_->FillHalo(y, padding_, n, begin - n * height, stop - n * height);
      begin = stop;
    }
  }

  Params params_;
  Function* run_;
  int64_t grain_rows_;
  std::optional<kernels::PlacedTensor> placed_output_;  // Where it has a halo.
  uint8_t padding_ = 0;
};

}  // namespace

absl::Span<const Variant> Variants() { return kVariants; }

absl::StatusOr<Params> MakeParams(const KernelDesc& desc) {
  ASSIGN_OR_RETURN(const kernels::PoolWindow window, kernels::MakePoolWindow(desc));
  RETURN_IF_ERROR(kernels::CheckCodes(desc.input(0), "input"));
  RETURN_IF_ERROR(kernels::CheckSameQuantization(desc.input(0), desc.output(), "max_pool2d"));
  return Params{window, desc.input(0).dtype == DType::kI8};
}

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const KernelDesc& desc) {
  ASSIGN_OR_RETURN(const Params params, MakeParams(desc));
  return std::make_unique<MaxPool2d>(desc, params, kernels::BestVariant(Variants(), desc.isa, params));
}

void Register(kernels::KernelRegistry& registry) {
  registry.Register({"int8.max_pool2d", kernels::LayoutRule::kNhwc, Create,
                     /*takes_placements=*/[](const KernelDesc& desc) { return MakeParams(desc).ok(); }});
}

void scalar::Run(const Params& p, const uint8_t* x, uint8_t* y, int64_t row_begin, int64_t row_end) {
  const kernels::PoolWindow::Axis &height = p.window.axes[0], &width = p.window.axes[1];
  const int64_t channels = p.window.channels;
  const uint8_t flip = p.is_signed ? 0x80 : 0;
  for (int64_t row = row_begin; row < row_end; ++row) {
    const uint8_t* image = x + p.window.x.first + row / height.out * p.window.x.image;
    uint8_t* to = y + p.window.y.first + row / height.out * p.window.y.image + row % height.out * p.window.y.row;
    const kernels::Taps taps_y = ValidTaps(height, row % height.out);
    for (int64_t column = 0; column < width.out; ++column) {
      const kernels::Taps taps_x = ValidTaps(width, column);
      for (int64_t c = 0; c < channels; ++c) {
        uint8_t largest = 0;
        for (int64_t i = taps_y.begin; i < taps_y.end; ++i) {
          for (int64_t j = taps_x.begin; j < taps_x.end; ++j) {
            const int64_t in_y = taps_y.start + i * height.dilation, in_x = taps_x.start + j * width.dilation;
            largest = std::max<uint8_t>(largest, image[in_y * p.window.x.row + in_x * p.window.x.pixel + c] ^ flip);
          }
        }
        to[column * p.window.y.pixel + c] = largest ^ flip;
      }
    }
  }
}

// A window's maximum is that of its columns' maxima, which windows share: the columns of a part of a row first, byte by
// byte whatever the channels, into a buffer; then the windows. Windows of one column are done with the first.
void MaxRows(const Params& p, void (*maximize)(const Maxima&), const uint8_t* x, uint8_t* y, int64_t row_begin,
             int64_t row_end) {
  const kernels::PoolWindow::Axis &height = p.window.axes[0], &width = p.window.axes[1];
  const kernels::PoolWindow::Pitch &in = p.window.x, &out = p.window.y;
  alignas(64) uint8_t buffer[kBufferBytes];
  const int64_t extent = (width.kernel - 1) * width.dilation + 1, seen = extent <= width.in ? extent : width.in + 1;
  // Of a window's columns as many channels as fit, and then as many windows.
  const int64_t all = p.window.channels, most_channels = kBufferBytes / seen;
  const int64_t channels = all < most_channels ? all : most_channels;
  if (channels < kLeastBytes) return scalar::Run(p, x, y, row_begin, row_end);
  const int64_t columns = (kBufferBytes / channels - seen) / width.stride + 1;
  const bool of_one = width.kernel == 1 && width.stride == 1 && width.out == width.in;
  Maxima window = {nullptr, 0, width.dilation * channels, nullptr, channels, 1, width.stride * channels, out.pixel};
  for (int64_t done = 0, first; done < all; done = first + channels) {
    first = done + channels < all ? done : all - channels;
    for (int64_t row = row_begin; row < row_end; ++row) {
      const int64_t n = row / height.out, of_image = row - n * height.out;
      const uint8_t* image = x + in.first + n * in.image + first;
      uint8_t* to = y + out.first + n * out.image + of_image * out.row + first;
      const kernels::Taps taps_y = kernels::ValidTaps(height, of_image);
      const int64_t count = taps_y.end - taps_y.begin;
      if (count > 0) image += (taps_y.start + taps_y.begin * height.dilation) * in.row;
      for (int64_t begin = 0; begin < width.out; begin += columns) {
        const int64_t end = begin + columns < width.out ? begin + columns : width.out;
        int64_t left = begin * width.stride - width.pad_begin;
        int64_t right = (end - 1) * width.stride - width.pad_begin + extent;
        left = left < 0 ? 0 : left;
        right = right > width.in ? width.in : right;
        const int64_t to_step = of_one ? out.pixel : channels;
        const bool dense = in.pixel == channels && to_step == channels;
        maximize({image + left * in.pixel, count, height.dilation * in.row, of_one ? to + begin * out.pixel : buffer,
                  channels * (dense ? right - left : 1), dense ? 1 : right - left, in.pixel, to_step});
        if (of_one) continue;
        for (int64_t column = begin; column < end;) {
          const kernels::Taps taps = kernels::ValidTaps(width, column);
          window.from = buffer + (taps.start + taps.begin * width.dilation - left) * channels;
          window.count = taps.end - taps.begin;
          window.to = to + column * out.pixel;
          window.runs = 1;
          if (window.count == width.kernel) {  // And those beside it that see no padding either.
            const int64_t whole = (width.in - extent - taps.start) / width.stride + 1;
            window.runs = whole < end - column ? whole : end - column;
          }
          maximize(window);
          column += window.runs;
        }
      }
    }
  }
}

}  // namespace fuselage::int8::max_pool2d
