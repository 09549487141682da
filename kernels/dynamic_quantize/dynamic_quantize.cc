#include "kernels/dynamic_quantize/dynamic_quantize.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/dynamic_quantize/range.h"
#include "kernels/int8/quantize/quantize.h"

namespace fuselage::dynamic_quantize {
namespace {

using int8::quantize::Params;
using kernels::Isa;
using kernels::KernelDesc;

constexpr Variant kVariants[] = {
    {"scalar", Isa::kScalar, nullptr, scalar::FindRange},
    {"avx2", Isa::kAvx2, nullptr, avx2::FindRange},
    {"avx512_vnni", Isa::kAvx512Vnni, nullptr, avx512_vnni::FindRange},
};

constexpr int64_t kGrain = 1 << 13;  // Elements that are worth a thread's while.

float ToFloat(int32_t ordered) {
  const int32_t bits = ordered ^ (ordered >> 31 & 0x7fffffff);
  float x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

float NormalOrOne(float scale) { return scale < std::numeric_limits<float>::min() ? 1 : scale; }

class DynamicQuantize : public kernels::Kernel {
 public:
  DynamicQuantize(const KernelDesc& desc, const Variant& variant)
      : Kernel(desc),
        asymmetric_(desc.outputs.size() == 3),
        groups_(GroupsOf(desc.input(0), desc.outputs[1])),
        pieces_(groups_.size() == 1 && groups_.segments.size() == 1
                    ? std::clamp<int64_t>(groups_.length / kGrain, 1, std::max(1, desc.threads))
                    : 1),
        find_range_(variant.run),
        quantize_(kernels::BestVariant(int8::quantize::Variants(), desc.isa, Params()).run) {
    set_variant(variant.name);
    set_scratch_bytes(groups_.size() * pieces_ * static_cast<int64_t>(sizeof(Range)));
  }

 private:
  absl::Status TryCompute(absl::Span<const kernels::ConstBuffer> inputs, absl::Span<const kernels::Buffer> outputs,
                          const kernels::RunContext& context) const override {
    const float* x = static_cast<const float*>(inputs[0].data);
    uint8_t* codes = static_cast<uint8_t*>(outputs[0].data);
    Range* ranges = static_cast<Range*>(context.scratch.data);
    float* scales = static_cast<float*>(outputs[1].data);
    uint8_t* offsets = asymmetric_ ? static_cast<uint8_t*>(outputs[2].data) : nullptr;
    const auto set_parameters = [&](int64_t group, const Range& range) {
      return SetParameters(range, &scales[group], offsets == nullptr ? nullptr : &offsets[group]);
    };
    const auto quantize = [&](int64_t piece) {
      const int64_t group = piece / pieces_;
      Params params = offsets == nullptr ? SymmetricParams(scales[group]) : Params();
      if (offsets != nullptr) {
        params.scale = scales[group];
        params.zero_point = offsets[group];
      }
      ForSegments(piece, [&](int64_t begin, int64_t n) {
        params.pixels = n;
        quantize_(params, x + begin, codes + begin, 0, n);
      });
    };
    ForPieces(*context.parallel, [&](int64_t piece) {
      ranges[piece] = {};
      ForSegments(piece, [&](int64_t begin, int64_t n) { Widen(find_range_(x + begin, n), &ranges[piece]); });
      if (pieces_ == 1 && set_parameters(piece, ranges[piece]).ok()) quantize(piece);  // While it is in a cache.
    });
    for (int64_t group = 0; group < groups_.size(); ++group) {
      Range range;
      for (int64_t piece = group * pieces_; piece < (group + 1) * pieces_; ++piece) Widen(ranges[piece], &range);
      RETURN_IF_ERROR(set_parameters(group, range));
    }
    if (pieces_ > 1) ForPieces(*context.parallel, quantize);
    return absl::OkStatus();
  }

  static void Widen(const Range& by, Range* range) {
    *range = {std::min(range->least, by.least), std::max(range->greatest, by.greatest)};
  }

  // Calls f(piece).
  template <typename F>
  void ForPieces(kernels::Parallel& parallel, F f) const {
    const int64_t grain = pieces_ > 1 ? 1 : std::max<int64_t>(1, kGrain / std::max<int64_t>(1, groups_.values()));
    kernels::ForRanges(parallel, groups_.size() * pieces_, grain, [&](int64_t first, int64_t last) {
      for (int64_t piece = first; piece < last; ++piece) f(piece);
    });
  }

  // Calls f(begin, n) for what of each segment is in the piece.
  template <typename F>
  void ForSegments(int64_t piece, F f) const {
    const int64_t part = piece % pieces_, offset = groups_.offsets[piece / pieces_];
    const int64_t begin = groups_.length * part / pieces_, end = groups_.length * (part + 1) / pieces_;
    for (const int64_t segment : groups_.segments) f(offset + segment + begin, end - begin);
  }

  absl::Status SetParameters(const Range& range, float* scale, uint8_t* offset) const {
    *scale = SymmetricScale(range);
    if (!std::isfinite(*scale)) return absl::InvalidArgumentError(absl::StrCat("input holds ", ShortestText(*scale)));
    if (!asymmetric_) return absl::OkStatus();
    const float least = ToFloat(range.least), greatest = ToFloat(range.greatest);
    *scale = NormalOrOne((greatest - least) / 255.0f);
    if (!std::isfinite(*scale)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the input's range [", ShortestText(least), ", ", ShortestText(greatest), "] overflows f32"));
    }
    *offset = static_cast<uint8_t>(std::clamp(std::nearbyint(0.0f - least / *scale), 0.0f, 255.0f));
    return absl::OkStatus();
  }

  const bool asymmetric_;
  const Groups groups_;
  const int64_t pieces_;  // How many pieces a group is cut into.
  Function* const find_range_;
  int8::quantize::Function* const quantize_;
};

}  // namespace

absl::Span<const Variant> Variants() { return kVariants; }

Groups GroupsOf(const TensorType& x, const TensorType& scale) {
  if (x.num_elements() == 0) return {std::vector<int64_t>(scale.num_elements()), {}, 0};
  if (scale.rank() == 0) return {{0}, {0}, x.num_elements()};
  Groups groups = {{0}, {0}, 1};
  int64_t stride = 1;
  for (int i = x.rank() - 1; i >= 0; --i) {  // As they lie in memory, the innermost first.
    const int axis = x.rank() == 4 && x.layout == Layout::kNhwc ? (i == 0 ? 0 : i == 3 ? 1 : i + 1) : i;
    const int64_t dim = x.shape[axis];
    if (scale.shape[axis] == 1 && stride == groups.length) {
      groups.length *= dim;
    } else {
      std::vector<int64_t>& starts = scale.shape[axis] == 1 ? groups.segments : groups.offsets;
      const size_t count = starts.size();
      for (int64_t k = 1; k < dim; ++k) {
        for (size_t start = 0; start < count; ++start) starts.push_back(starts[start] + k * stride);
      }
    }
    stride *= dim;
  }
  return groups;
}

float SymmetricScale(const Range& range) {
  const float least = ToFloat(range.least), greatest = ToFloat(range.greatest);
  if (!std::isfinite(least) || !std::isfinite(greatest)) return std::isfinite(least) ? greatest : least;
  return NormalOrOne(std::max(-least, greatest) / 127.0f);
}

Params SymmetricParams(float scale) {
  Params params;
  params.scale = scale;
  params.flip = 0x80;  // In the unsigned form.
  params.zero_point = 128;
  params.lo = 1;
  return params;
}

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const KernelDesc& desc) {
  if (!desc.has_input(0) || desc.outputs.size() < 2) {
    return absl::InvalidArgumentError(absl::StrCat(desc.op, ": wanted an operand, codes and a scale"));
  }
  if (desc.input(0).dtype != DType::kF32) {
    return absl::UnimplementedError(absl::StrCat(desc.op, ": input is ", ToString(desc.input(0)), ", wanted f32"));
  }
  return std::make_unique<DynamicQuantize>(desc, kernels::BestVariant(Variants(), desc.isa, desc));
}

void Register(kernels::KernelRegistry& registry) {
  for (const char* op : {"dynamic_quantize_asymmetric", "dynamic_quantize_symmetric"}) {
    registry.Register({op, kernels::LayoutRule::kSame, Create});
  }
}

Range scalar::FindRange(const float* x, int64_t n) { return RangeOf(x, n); }

}  // namespace fuselage::dynamic_quantize
