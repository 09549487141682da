#include "kernels/int8/quantize/quantize.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "kernels/core/requantize.h"

namespace fuselage::int8::quantize {
namespace {

using kernels::Isa;
using kernels::KernelDesc;

constexpr Variant kVariants[] = {
    {"scalar", Isa::kScalar, nullptr, scalar::Run},
    {"avx2", Isa::kAvx2, nullptr, avx2::Run},
    {"avx512_vnni", Isa::kAvx512Vnni, nullptr, avx512_vnni::Run},
};

constexpr int64_t kGrain = 1 << 13;  // Elements.

class Quantize : public kernels::UnaryKernel {
 public:
  Quantize(const KernelDesc& desc, const Params& params, const Variant& variant)
      : UnaryKernel(desc), params_(params), run_(variant.run) {
    set_variant(variant.name);
    // A multiple of 64 pixels: vectors do not straddle threads.
    grain_pixels_ = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, params.channels) / 64) * 64;
  }

 private:
  void ComputeUnary(const void* x, void* y, const kernels::RunContext& context) const override {
    kernels::ForRanges(*context.parallel, params_.images * params_.pixels, grain_pixels_,
                       [&](int64_t begin, int64_t end) {
                         run_(params_, static_cast<const float*>(x), static_cast<uint8_t*>(y), begin, end);
                       });
  }

  Params params_;
  Function* run_;
  int64_t grain_pixels_;
};

// To an output that is not dense: row by row, through a row of scratch memory where its pixels do not follow each
// other.
class QuantizePlaced : public kernels::UnaryKernel {
 public:
  QuantizePlaced(const KernelDesc& desc, const Params& params, const Variant& variant)
      : UnaryKernel(desc),
        params_(params),
        run_(variant.run),
        placed_(desc.output().shape, desc.output_placement),
        padding_(static_cast<uint8_t>(desc.output().quant->zero_point())) {
    set_variant(variant.name);
    // Copies of kCopy bytes may read beyond the row.
    row_bytes_ = (placed_.width * placed_.channels + kCopy + 63) / 64 * 64;
    set_scratch_bytes(row_bytes_ * std::max(1, desc.threads));
  }

 private:
  static constexpr int64_t kCopy = 8;

  void ComputeUnary(const void* x, void* y, const kernels::RunContext& context) const override {
    // In pairs: two rows share their blocks.
    const int64_t pairs = (placed_.height + 1) / 2, all = placed_.batch * pairs;
    const int tasks = static_cast<int>(std::min<int64_t>(all, context.parallel->threads()));
    context.parallel->For(tasks, [&](int task, int thread) {
      uint8_t* scratch = static_cast<uint8_t*>(context.scratch.data) + thread * row_bytes_;
      for (int64_t pair = all * task / tasks; pair < all * (task + 1) / tasks; ++pair) {
        const int64_t n = pair / pairs, begin = 2 * (pair % pairs), end = std::min(begin + 2, placed_.height);
        for (int64_t row = begin; row < end; ++row) {
          Row(static_cast<const float*>(x), static_cast<uint8_t*>(y), n, row, scratch);
        }
        placed_.FillHalo(y, padding_, n, begin, end);
      }
    });
  }

  void Row(const float* x, uint8_t* y, int64_t n, int64_t row, uint8_t* scratch) const {
    const int64_t codes = placed_.width * placed_.channels, units = codes / params_.channels;
    const int64_t begin = (n * placed_.height + row) * units;
    uint8_t* to = y + placed_.Offset(n, row, 0);
    const bool in_place =
        placed_.placement.blocking == kernels::Blocking::kNone && placed_.pixel_bytes == placed_.channels;
    // `run_` counts from the whole tensor's first code.
    run_(params_, x, (in_place ? to : scratch) - begin * params_.channels, begin, begin + units);
    if (in_place) return;
    const bool blocks = placed_.placement.blocking == kernels::Blocking::kSpaceToDepth;
    const int64_t run = (blocks ? 2 : 1) * placed_.channels;  // Codes that follow each other in a pixel (block).
    const int64_t count = codes / run, at = blocks ? row % 2 * run : 0;
    if (blocks && run <= kCopy && at + kCopy <= placed_.pixel_bytes) {
      // One move each. What it writes beyond the run comes later (the row below) or is undefined.
      for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * placed_.pixel_bytes, scratch + i * run, kCopy);
    } else {
      for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * placed_.pixel_bytes, scratch + i * run, run);
    }
    std::memcpy(to + count * placed_.pixel_bytes, scratch + count * run, codes - count * run);
  }

  const Params params_;
  Function* const run_;
  const kernels::PlacedTensor placed_;
  const uint8_t padding_;
  int64_t row_bytes_;
};

absl::Status CheckPlacement(const KernelDesc& desc) {
  const kernels::Placement& placement = desc.output_placement;
  if (placement.dense()) return absl::OkStatus();
  if (desc.output().rank() != 4 || placement.blocking == kernels::Blocking::kPhasePlanes) {
    return absl::UnimplementedError(
        absl::StrCat("quantize: ", ToString(desc.output()), " with ", kernels::PlacementText(placement)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Span<const Variant> Variants() { return kVariants; }

absl::StatusOr<Params> MakeParams(const KernelDesc& desc) {
  if (!desc.has_input(0)) return absl::InvalidArgumentError("quantize: wanted an operand");
  const TensorType &x = desc.input(0), &y = desc.output();
  if (x.dtype != DType::kF32) {
    return absl::UnimplementedError(absl::StrCat("quantize: input is ", ToString(x), ", wanted f32"));
  }
  RETURN_IF_ERROR(kernels::CheckCodes(y, "output"));
  if (x.shape != y.shape) {
    return absl::InvalidArgumentError(
        absl::StrCat("quantize: ", ToString(x), " to ", ToString(y), ", wanted one shape"));
  }
  const kernels::UnsignedForm form = kernels::UnsignedFormOf(y);
  const kernels::CodeRange range = kernels::CodeRangeOf(DType::kU8, form.zero_point, /*scale=*/1);
  Params params;
  params.pixels = x.num_elements();
  const bool interleaves = x.layout == Layout::kRowMajor && y.layout == Layout::kNhwc;
  if (x.rank() == 4 && interleaves && x.shape[1] > 1 && x.shape[2] * x.shape[3] > 1) {
    params.images = x.shape[0];
    params.channels = x.shape[1];
    params.pixels = x.shape[2] * x.shape[3];
  }
  params.scale = y.quant->scale();
  params.flip = form.flip;
  params.zero_point = form.zero_point;
  params.lo = range.lo;
  params.hi = range.hi;
  return params;
}

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const KernelDesc& desc) {
  ASSIGN_OR_RETURN(const Params params, MakeParams(desc));
  RETURN_IF_ERROR(CheckPlacement(desc));
  const Variant& variant = kernels::BestVariant(Variants(), desc.isa, params);
  if (!desc.output_placement.dense()) return std::make_unique<QuantizePlaced>(desc, params, variant);
  return std::make_unique<Quantize>(desc, params, variant);
}

void Register(kernels::KernelRegistry& registry) {
  registry.Register({"int8.quantize", kernels::LayoutRule::kAnyInput, Create,
                     /*takes_placements=*/[](const KernelDesc& desc) { return CheckPlacement(desc).ok(); }});
}

void scalar::Run(const Params& p, const float* x, uint8_t* y, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    const float* pixel = x + i / p.pixels * p.pixels * p.channels + i % p.pixels;
    for (int64_t c = 0; c < p.channels; ++c) {
      const int32_t q = kernels::QuantizeValue(pixel[c * p.pixels], p.scale, p.zero_point, {p.lo, p.hi});
      y[i * p.channels + c] = static_cast<uint8_t>(q) ^ p.flip;
    }
  }
}

}  // namespace fuselage::int8::quantize
