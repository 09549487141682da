#include "kernels/quantize/quantize.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/core/strides.h"
#include "kernels/int8/dequantize/dequantize.h"
#include "kernels/int8/quantize/quantize.h"
#include "kernels/quantize/rows.h"

namespace fuselage::quantize {
namespace {

using kernels::Isa;
using kernels::KernelDesc;

constexpr Variant kVariants[] = {
    {"scalar", Isa::kScalar, nullptr, scalar::Run},
    {"avx2", Isa::kAvx2, nullptr, avx2::Run},
    {"avx512_vnni", Isa::kAvx512Vnni, nullptr, avx512_vnni::Run},
};

bool IsQuantize(const Form& form) { return form.to != DType::kF32; }

enum Operand { kInput, kScale, kZeroPoint };

constexpr int64_t kChunk = 1 << 13;  // Elements of a row that one call maps, and that are worth a thread's while.

// Strides in elements, of what is read, written, and of the parameters.
struct Axis {
  int64_t size, x, y, param;
};

// Axis `axis` of the parameters is the one with a scale each, or -1. By falling stride of y; neighbours are merged
// where all strides allow it.
std::vector<Axis> AxesOf(const TensorType& x, const TensorType& y, int axis) {
  const std::vector<int64_t> from = kernels::StridesOf(x), to = kernels::StridesOf(y);
  std::vector<Axis> axes;
  for (int i = 0; i < x.rank(); ++i) {
    if (x.shape[i] != 1) axes.push_back({x.shape[i], from[i], to[i], i == axis ? 1 : 0});
  }
  std::stable_sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.y > b.y; });
  std::vector<Axis> merged;
  for (const Axis& inner : axes) {
    if (!merged.empty()) {
      Axis& outer = merged.back();
      if (outer.x == inner.x * inner.size && outer.y == inner.y * inner.size &&
          outer.param == inner.param * inner.size) {
        outer = {outer.size * inner.size, inner.x, inner.y, inner.param};
        continue;
      }
    }
    merged.push_back(inner);
  }
  if (merged.empty()) merged.push_back({1, 1, 1, 0});
  return merged;
}

bool IsScale(float scale) {
  return scale >= std::numeric_limits<float>::min() && scale <= std::numeric_limits<float>::max();
}

class Rows : public kernels::Kernel {
 public:
  // `params`: those that are known; empty where they are computed.
  Rows(const KernelDesc& desc, const Form& form, QuantParams params, const Variant& variant)
      : Kernel(desc),
        form_(form),
        params_(std::move(params)),
        run_(variant.run),
        axes_(AxesOf(desc.input(kInput), desc.output(), params_.axis)),
        elements_(desc.output().num_elements()),
        x_bytes_(ByteSize(form.from)),
        y_bytes_(ByteSize(form.to)) {
    set_variant(variant.name);
    if (!computed()) return;
    params_.zero_points.assign(desc.input(kScale).num_elements(), 0);
    if (desc.has_input(kZeroPoint)) set_scratch_bytes(params_.zero_points.size() * sizeof(int32_t));
  }

 private:
  bool computed() const { return params_.scales.empty(); }
  const TensorType& codes() const { return IsQuantize(form_) ? outputs()[0] : *inputs()[kInput]; }

  absl::Status TryCompute(absl::Span<const kernels::ConstBuffer> inputs, absl::Span<const kernels::Buffer> outputs,
                          const kernels::RunContext& context) const override {
    Row whole{inputs[kInput].data, outputs[0].data, params_.scales.data(), params_.zero_points.data()};
    if (computed()) {
      whole.scales = static_cast<const float*>(inputs[kScale].data);
      RETURN_IF_ERROR(CheckScales(whole.scales));
    }
    if (scratch_bytes() > 0) {
      int32_t* zero_points = static_cast<int32_t*>(context.scratch.data);
      Widen(inputs[kZeroPoint].data, zero_points);
      whole.zero_points = zero_points;
    }
    if (elements_ > 0) Map(whole, *context.parallel);
    return absl::OkStatus();
  }

  absl::Status CheckScales(const float* scales) const {
    const size_t count = params_.zero_points.size();
    if (std::all_of(scales, scales + count, IsScale)) return absl::OkStatus();
    const QuantParams found{std::vector<float>(scales, scales + count), params_.zero_points, params_.axis};
    return CheckQuantParams(found, codes().dtype, codes().shape);
  }

  void Widen(const void* from, int32_t* to) const {
    const int64_t count = static_cast<int64_t>(params_.zero_points.size());
    switch (codes().dtype) {
      case DType::kU8: std::copy_n(static_cast<const uint8_t*>(from), count, to); break;
      case DType::kI8: std::copy_n(static_cast<const int8_t*>(from), count, to); break;
      case DType::kI16: std::copy_n(static_cast<const int16_t*>(from), count, to); break;
      default: std::copy_n(static_cast<const int32_t*>(from), count, to);
    }
  }

  // In chunks of the innermost axis.
  void Map(const Row& whole, kernels::Parallel& parallel) const {
    const Axis& inner = axes_.back();
    const int64_t chunks = (inner.size + kChunk - 1) / kChunk, rows = elements_ / inner.size;
    const int64_t grain = std::max<int64_t>(1, kChunk / inner.size);
    kernels::ForRanges(parallel, rows * chunks, grain, [&](int64_t begin, int64_t end) {
      for (int64_t chunk = begin; chunk < end; ++chunk) {
        const int64_t first = chunk % chunks * kChunk;
        int64_t x = first * inner.x, y = first * inner.y, param = first * inner.param, row = chunk / chunks;
        for (size_t i = axes_.size() - 1; i-- > 0; row /= axes_[i].size) {
          const int64_t index = row % axes_[i].size;
          x += index * axes_[i].x;
          y += index * axes_[i].y;
          param += index * axes_[i].param;
        }
        run_(form_, {static_cast<const char*>(whole.x) + x * x_bytes_, static_cast<char*>(whole.y) + y * y_bytes_,
                     whole.scales + param, whole.zero_points + param, std::min(kChunk, inner.size - first), inner.x,
                     inner.y, inner.param});
      }
    });
  }

  const Form form_;
  QuantParams params_;
  Function* const run_;
  const std::vector<Axis> axes_;
  const int64_t elements_, x_bytes_, y_bytes_;
};

bool IsCodes(DType dtype) {
  return dtype == DType::kU8 || dtype == DType::kI8 || dtype == DType::kI16 || dtype == DType::kI32;
}

// Without scales where they are computed. `type`: of the codes.
QuantParams ParamsOf(const KernelDesc& desc, const TensorType& type) {
  QuantParams params;
  params.axis = static_cast<int>(desc.GetInt("axis"));
  if (desc.has_input(kScale)) return params;
  const std::vector<double>& scales = desc.attribute("scales").as_floats();
  if (scales.empty()) return *type.quant;
  for (const double scale : scales) params.scales.push_back(static_cast<float>(scale));
  for (const int64_t zero_point : desc.GetInts("zero_points")) {
    params.zero_points.push_back(static_cast<int32_t>(zero_point));
  }
  params.zero_points.resize(params.scales.size());
  return params;
}

}  // namespace

absl::Span<const Variant> Variants() { return kVariants; }

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const KernelDesc& desc) {
  if (!desc.has_input(kInput)) return absl::InvalidArgumentError(absl::StrCat(desc.op, ": wanted an operand"));
  const Form form{desc.input(kInput).dtype, desc.output().dtype};
  const DType codes = IsQuantize(form) ? form.to : form.from, real = IsQuantize(form) ? form.from : form.to;
  if (!IsCodes(codes) || (real != DType::kF32 && !(IsQuantize(form) && real == DType::kI32))) {
    return absl::UnimplementedError(
        absl::StrCat(desc.op, " from ", ToString(desc.input(kInput)), " to ", ToString(desc.output())));
  }
  QuantParams params = ParamsOf(desc, IsQuantize(form) ? desc.output() : desc.input(kInput));
  const bool known = !params.scales.empty() && params.per_tensor();
  if (known && real == DType::kF32 && (codes == DType::kU8 || codes == DType::kI8)) {
    if (IsQuantize(form)) return int8::quantize::Create(desc);
    KernelDesc typed = desc;
    typed.inputs[kInput]->quant = std::move(params);
    return int8::dequantize::Create(typed);
  }
  return std::make_unique<Rows>(desc, form, std::move(params), kernels::BestVariant(Variants(), desc.isa, form));
}

void Register(kernels::KernelRegistry& registry) {
  registry.Register({"quantize", kernels::LayoutRule::kAnyInput, Create});
  registry.Register({"dequantize", kernels::LayoutRule::kAnyOutput, Create});
}

void scalar::Run(const Form& form, const Row& row) { RunRow(form, row); }

}  // namespace fuselage::quantize
