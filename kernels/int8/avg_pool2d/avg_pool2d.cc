#include "kernels/int8/avg_pool2d/avg_pool2d.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "absl/strings/str_cat.h"
#include "kernels/core/requantize.h"
#include "kernels/int8/avg_pool2d/avg_pool2d_rows.h"

namespace fuselage::int8::avg_pool2d {
namespace {

using kernels::Isa;
using kernels::KernelDesc;

constexpr char kGlobalOp[] = "int8.global_avg_pool";

constexpr Variant kVariants[] = {
    {"scalar", Isa::kScalar, nullptr, scalar::Run},
    {"avx2", Isa::kAvx2, nullptr, avx2::Run},
    {"avx512_vnni", Isa::kAvx512Vnni, nullptr, avx512_vnni::Run},
};

constexpr int64_t kGrainBytes = 1 << 14;  // A thread gets at least so many bytes of input.

class AvgPool2d : public kernels::UnaryKernel {
 public:
  AvgPool2d(const KernelDesc& desc, const Params& params, const Variant& variant)
      : UnaryKernel(desc), params_(params), run_(variant.run) {
    set_variant(variant.name);
    const kernels::PoolWindow& w = params.window;
    const int64_t taps = w.axes[0].kernel * w.axes[1].kernel;
    grain_rows_ = std::max<int64_t>(1, kGrainBytes / std::max<int64_t>(1, w.axes[1].out * w.channels * taps));
  }

 private:
  void ComputeUnary(const void* x, void* y, const kernels::RunContext& context) const override {
    const int64_t rows = params_.window.batch * params_.window.axes[0].out;
    kernels::ForRanges(*context.parallel, rows, grain_rows_, [&](int64_t begin, int64_t end) {
      run_(params_, static_cast<const uint8_t*>(x), static_cast<uint8_t*>(y), begin, end);
    });
  }

  Params params_;
  Function* run_;
  int64_t grain_rows_;
};

}  // namespace

absl::Span<const Variant> Variants() { return kVariants; }

[[gnu::cold]] absl::StatusOr<Params> MakeParams(const KernelDesc& desc) {
  const bool global = desc.op == kGlobalOp;
  if (!desc.output_placement.even()) {
    return absl::UnimplementedError(
        absl::StrCat("average pool: an output with ", kernels::PlacementText(desc.output_placement)));
  }
  Params params;
  ASSIGN_OR_RETURN(params.window, global ? kernels::MakeGlobalPoolWindow(desc) : kernels::MakePoolWindow(desc));
  params.count_include_pad = !global && desc.GetBool("count_include_pad");
  const TensorType &x = desc.input(0), &y = desc.output();
  RETURN_IF_ERROR(kernels::CheckCodes(x, "input"));
  RETURN_IF_ERROR(kernels::CheckCodes(y, "output"));
  const kernels::UnsignedForm form_x = kernels::UnsignedFormOf(x), form_y = kernels::UnsignedFormOf(y);
  const kernels::CodeRange range = kernels::CodeRangeOf(DType::kU8, form_y.zero_point, /*scale=*/1);
  params.flip_x = form_x.flip;
  params.flip_y = form_y.flip;
  params.zero_point_x = form_x.zero_point;
  params.zero_point_y = form_y.zero_point;
  params.scale_x = x.quant->scale();
  params.scale_y = y.quant->scale();
  params.lo = range.lo;
  params.hi = range.hi;
  const kernels::PoolWindow::Axis* axes = params.window.axes;
  // Taps that can be valid, so that a window larger than its image is not declined for its size alone.
  const int64_t taps = std::min(axes[0].kernel, axes[0].in) * std::min(axes[1].kernel, axes[1].in);
  if (taps > ((int64_t{1} << 31) - 1) / 255) {
    return absl::FailedPreconditionError(
        absl::StrCat("average pool: the sum over ", taps, " taps may overflow 32 bits"));
  }
  // The multiplier falls with n: normal at both ends, it is normal between.
  for (const int64_t n : {int64_t{1}, axes[0].kernel * axes[1].kernel}) {
    const float multiplier = params.scale_x / (params.scale_y * static_cast<float>(n));
    if (!std::isnormal(multiplier)) {
      return absl::FailedPreconditionError(absl::StrCat("average pool: input scale / (output scale * ", n, ") is ",
                                                        ShortestText(multiplier), ", wanted a normal float"));
    }
  }
  return params;
}

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const KernelDesc& desc) {
  ASSIGN_OR_RETURN(const Params params, MakeParams(desc));
  return std::make_unique<AvgPool2d>(desc, params, kernels::BestVariant(Variants(), desc.isa, params));
}

void Register(kernels::KernelRegistry& registry) {
  const auto places = [](const KernelDesc& desc) { return MakeParams(desc).ok(); };
  registry.Register({"int8.avg_pool2d", kernels::LayoutRule::kNhwc, Create, places});
  registry.Register({kGlobalOp, kernels::LayoutRule::kNhwc, Create, places});
}

void scalar::Run(const Params& p, const uint8_t* x, uint8_t* y, int64_t row_begin, int64_t row_end) {
  AverageRows(p, x, y, row_begin, row_end, [&p](const PixelWindow& w, uint8_t* out) {
    for (int64_t c = 0; c < p.window.channels; ++c) {
      int32_t sum = 0;
      for (int64_t i = 0; i < w.taps_y; ++i) {
        for (int64_t j = 0; j < w.taps_x; ++j) {
          sum += (w.first[i * w.step_y + j * w.step_x + c] ^ p.flip_x) - p.zero_point_x;
        }
      }
      const float v = static_cast<float>(sum) * w.multiplier;
      out[c] = static_cast<uint8_t>(kernels::ToCode(v, p.zero_point_y, {p.lo, p.hi})) ^ p.flip_y;
    }
  });
}

}  // namespace fuselage::int8::avg_pool2d
