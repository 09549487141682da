#include "kernels/int8/quantize/pixel_codes.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace fuselage::int8::quantize {
namespace {

using kernels::KernelDesc;

constexpr int64_t kGrain = 1 << 13;  // Elements.

class PixelCodes : public kernels::UnaryKernel {
 public:
  [[gnu::cold]] PixelCodes(const KernelDesc& desc, const char* variant, std::unique_ptr<const PixelLoop> loop,
                           std::shared_ptr<const Tensor> packed)
      : UnaryKernel(desc), loop_(std::move(loop)) {
    set_variant(variant);
    if (packed != nullptr) set_weight_bytes(0, {std::move(packed)});
    // A multiple of 64 pixels: vectors do not straddle threads.
    grain_pixels_ = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, loop_->channels) / 64) * 64;
  }

 protected:
  const std::unique_ptr<const PixelLoop> loop_;

 private:
  void ComputeUnary(const void* x, void* y, const kernels::RunContext& context) const override {
    kernels::ForRanges(*context.parallel, loop_->pixels, grain_pixels_,
                       [&](int64_t begin, int64_t end) { loop_->Run(x, static_cast<uint8_t*>(y), begin, end); });
  }

  int64_t grain_pixels_;
};

// To an output that is not dense: two rows at a time, through scratch memory where its pixels do not follow each other.
class Placed final : public PixelCodes {
 public:
  [[gnu::cold]] Placed(const KernelDesc& desc, const char* variant, std::unique_ptr<const PixelLoop> loop,
                       std::shared_ptr<const Tensor> packed)
      : PixelCodes(desc, variant, std::move(loop), std::move(packed)),
        placed_(desc.output().shape, desc.output_placement),
        padding_(static_cast<uint8_t>(desc.output().quant->zero_point())) {
    // Copies of kCopy bytes may read beyond the row.
    rows_bytes_ = (2 * placed_.width * placed_.channels + kCopy + 63) / 64 * 64;
    set_scratch_bytes(rows_bytes_ * std::max(1, desc.threads));
  }

 private:
  static constexpr int64_t kCopy = 8;

  void ComputeUnary(const void* x, void* y, const kernels::RunContext& context) const override {
    // In pairs: two rows share their blocks.
    const int64_t pairs = (placed_.height + 1) / 2, all = placed_.batch * pairs;
    const int tasks = static_cast<int>(std::min<int64_t>(all, context.parallel->threads()));
    context.parallel->For(tasks, [&](int task, int thread) {
      uint8_t* scratch = static_cast<uint8_t*>(context.scratch.data) + thread * rows_bytes_;
      for (int64_t pair = all * task / tasks; pair < all * (task + 1) / tasks; ++pair) {
        const int64_t n = pair / pairs, begin = 2 * (pair % pairs), end = std::min(begin + 2, placed_.height);
        Rows(x, static_cast<uint8_t*>(y), n, begin, end, scratch);
        placed_.FillHalo(y, padding_, n, begin, end);
      }
    });
  }

  void Rows(const void* x, uint8_t* y, int64_t n, int64_t begin, int64_t end, uint8_t* scratch) const {
    const int64_t codes = placed_.width * placed_.channels, units = codes / loop_->channels;
    const auto run = [&](int64_t first, int64_t last, uint8_t* to) {
      // The loop counts from the whole tensor's first code.
      const int64_t unit = (n * placed_.height + first) * units;
      loop_->Run(x, to - unit * loop_->channels, unit, unit + (last - first) * units);
    };
    const bool in_place =
        placed_.placement.blocking == kernels::Blocking::kNone && placed_.pixel_bytes == placed_.channels;
    if (!in_place) run(begin, end, scratch);
    for (int64_t row = begin; row < end; ++row) {
      uint8_t* to = y + placed_.Offset(n, row, 0);
      if (in_place) {
        run(row, row + 1, to);
      } else {
        CopyRow(scratch + (row - begin) * codes, to, row);
      }
    }
  }

  void CopyRow(const uint8_t* from, uint8_t* to, int64_t row) const {
    const int64_t codes = placed_.width * placed_.channels;
    const bool blocks = placed_.placement.blocking == kernels::Blocking::kSpaceToDepth;
    const int64_t run = (blocks ? 2 : 1) * placed_.channels;  // Codes that follow each other in a pixel (block).
    const int64_t count = codes / run, at = blocks ? row % 2 * run : 0;
    if (blocks && run <= kCopy && at + kCopy <= placed_.pixel_bytes) {
      // One move each. What it writes beyond the run comes later (the row below) or is undefined.
      for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * placed_.pixel_bytes, from + i * run, kCopy);
    } else {
      for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * placed_.pixel_bytes, from + i * run, run);
    }
    std::memcpy(to + count * placed_.pixel_bytes, from + count * run, codes - count * run);
  }

  const kernels::PlacedTensor placed_;
  const uint8_t padding_;
  int64_t rows_bytes_;
};

}  // namespace

absl::Status CheckPlacement(const KernelDesc& desc) {
  const kernels::Placement& placement = desc.output_placement;
  if (placement.dense()) return absl::OkStatus();
  if (desc.output().rank() == 4 && placement.blocking != kernels::Blocking::kPhasePlanes) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat(desc.op, ": ", ToString(desc.output()), " with ", kernels::PlacementText(placement)));
}

std::unique_ptr<kernels::Kernel> MakePixelCodes(const KernelDesc& desc, const char* variant,
                                                std::unique_ptr<const PixelLoop> loop,
                                                std::shared_ptr<const Tensor> packed) {
  if (desc.output_placement.dense()) {
    return std::make_unique<PixelCodes>(desc, variant, std::move(loop), std::move(packed));
  }
  return std::make_unique<Placed>(desc, variant, std::move(loop), std::move(packed));
}

}  // namespace fuselage::int8::quantize
