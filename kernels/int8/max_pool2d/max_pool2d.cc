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

constexpr int64_t kGrainBytes = 1 << 15;  // A thread gets at least so many bytes of input.

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

}  // namespace fuselage::int8::max_pool2d
