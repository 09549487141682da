#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/integer/conv.h"
#include "kernels/integer/pixel.h"
#include "kernels/integer/product.h"

namespace fuselage::integer {
namespace {

using depthwise::kLanes;
using kernels::KernelDesc;

constexpr int64_t kGrain = 1 << 14;  // Products that are worth a thread's while.

// Padding has codes of the zero point, so that all windows are alike, and what the zero point adds to a channel's sum
// is known before: -zero point * (sum of the channel's weights).
class Depthwise final : public kernels::Kernel {
 public:
  Depthwise(const KernelDesc& desc, const Axes& axes, const ConvWeight& weight)
      : Kernel(desc), axes_(axes), batch_(desc.output().shape[0]) {
    const bool is_signed = desc.input(kInput).dtype == DType::kI8;
    const int64_t channels = desc.output().shape[1], taps = axes[0].kernel * axes[1].kernel;
    pixel_.is_signed = is_signed;
    pixel_.channels = channels;
    pixel_.pairs = (taps + 1) / 2;
    const int64_t lanes = std::min(kLanes, channels), blocks = (channels + kLanes - 1) / kLanes;
    const TensorType type{DType::kI16, {blocks, pixel_.pairs, kLanes, 2}, std::nullopt, Layout::kRowMajor};
    packed_ = desc.Packed(
        "weight", absl::StrCat("conv_integer depthwise ", TextOf(weight.zero_point), " ", ToString(type)), [&] {
          Tensor packed(type);
          std::memset(packed.raw_data(), 0, packed.byte_size());
          int16_t* to = packed.data<int16_t>();
          for (int64_t block = 0; block < blocks; ++block, to += 2 * pixel_.pairs * kLanes) {
            const int64_t first = std::min(block * kLanes, channels - lanes);
            for (int64_t i = 0; i < taps * lanes; ++i) {
              to[(i / lanes / 2 * kLanes + i % lanes) * 2 + i / lanes % 2] = weight(first + i % lanes, i / lanes);
            }
          }
          return packed;
        });
    weight_sums_.resize(channels);
    for (int64_t i = 0; i < channels * taps; ++i) weight_sums_[i / taps] += weight(i / taps, i % taps);
    pixel_.weight = packed_->data<int16_t>();
    const depthwise::Variant& variant = kernels::BestVariant(depthwise::Variants(), desc.isa, pixel_);
    run_ = variant.run;
    set_variant(variant.name);
    set_weight_bytes(0, {packed_});
    set_scratch_bytes(taps_bytes() * std::max(1, desc.threads) + channels * (sizeof(int32_t) + 1));
  }

 private:
  int64_t taps_bytes() const { return 2 * pixel_.pairs * sizeof(const uint8_t*); }

  // Scratch memory: each thread's pointers to a window's pixels, the channels' first sums, a pixel of padding.
  void Compute(absl::Span<const kernels::ConstBuffer> inputs, absl::Span<const kernels::Buffer> outputs,
               const kernels::RunContext& context) const override {
    const int64_t rows = batch_ * axes_[0].output;
    const int64_t row_products = axes_[1].output * pixel_.channels * 2 * pixel_.pairs;
    const int64_t tasks = std::min<int64_t>(rows, rows * row_products / kGrain + 1);
    char* scratch = static_cast<char*>(context.scratch.data);
    int32_t* first = reinterpret_cast<int32_t*>(scratch + context.parallel->threads() * taps_bytes());
    uint8_t* padding = reinterpret_cast<uint8_t*>(first + pixel_.channels);
    const int32_t zero_point = ZeroPoint(*this, kInputZeroPoint, inputs);
    for (int64_t c = 0; c < pixel_.channels; ++c) {
      first[c] = static_cast<int32_t>(static_cast<uint32_t>(-zero_point) * static_cast<uint32_t>(weight_sums_[c]));
    }
    std::memset(padding, zero_point, pixel_.channels);

    context.parallel->For(static_cast<int>(tasks), [&](int task, int thread) {
      const uint8_t** taps = reinterpret_cast<const uint8_t**>(scratch + thread * taps_bytes());
      for (int64_t row = rows * task / tasks; row < rows * (task + 1) / tasks; ++row) {
        ComputeRow(row, static_cast<const uint8_t*>(inputs[kInput].data), first, padding, taps,
                   static_cast<int32_t*>(outputs[0].data));
      }
    });
  }

  void ComputeRow(int64_t row, const uint8_t* x, const int32_t* first, const uint8_t* padding, const uint8_t** taps,
                  int32_t* y) const {
    const auto& [h, w] = axes_;
    const uint8_t* image = x + row / h.output * h.input * w.input * pixel_.channels;
    depthwise::Pixel pixel = pixel_;
    pixel.taps = taps;
    pixel.first = first;
    pixel.sums = y + row * w.output * pixel_.channels;
    taps[2 * pixel.pairs - 1] = padding;  // Where there is an odd number of taps, the last has weights of 0.
    for (int64_t ox = 0; ox < w.output; ++ox, pixel.sums += pixel.channels) {
      const uint8_t** tap = taps;
      for (int64_t i = 0; i < h.kernel; ++i) {
        const int64_t iy = h.Place(row % h.output, i);
        for (int64_t j = 0; j < w.kernel; ++j, ++tap) {
          const int64_t ix = w.Place(ox, j);
          *tap = h.Includes(iy) && w.Includes(ix) ? image + (iy * w.input + ix) * pixel.channels : padding;
        }
      }
      run_(pixel);
    }
  }

  const Axes axes_;
  const int64_t batch_;
  depthwise::Pixel pixel_;  // What all have in common.
  depthwise::Function* run_;
  std::shared_ptr<const Tensor> packed_;
  std::vector<int32_t> weight_sums_;  // By channel.
};

}  // namespace

std::unique_ptr<kernels::Kernel> MakeDepthwise(const KernelDesc& desc, const Axes& axes, const ConvWeight& weight) {
  return std::make_unique<Depthwise>(desc, axes, weight);
}

}  // namespace fuselage::integer
