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

class DynamicQuantize : public kernels::Kernel {
 public:
  DynamicQuantize(const KernelDesc& desc, const Variant& variant)
      : Kernel(desc),
        asymmetric_(desc.outputs.size() == 3),
        groups_(desc.outputs[1].num_elements()),
        size_(groups_ == 0 ? 0 : desc.input(0).num_elements() / groups_),
        pieces_(groups_ == 1 ? std::clamp<int64_t>(size_ / kGrain, 1, std::max(1, desc.threads)) : 1),
        find_range_(variant.run),
        quantize_(kernels::BestVariant(int8::quantize::Variants(), desc.isa, Params()).run) {
    set_variant(variant.name);
    set_scratch_bytes(groups_ * pieces_ * static_cast<int64_t>(sizeof(Range)));
  }

 private:
  absl::Status TryCompute(absl::Span<const kernels::ConstBuffer> inputs, absl::Span<const kernels::Buffer> outputs,
                          const kernels::RunContext& context) const override {
    const float* x = static_cast<const float*>(inputs[0].data);
    Range* ranges = static_cast<Range*>(context.scratch.data);
    ForPieces(*context.parallel,
              [&](int64_t piece, int64_t begin, int64_t end) { ranges[piece] = find_range_(x + begin, end - begin); });
    float* scales = static_cast<float*>(outputs[1].data);
    uint8_t* offsets = asymmetric_ ? static_cast<uint8_t*>(outputs[2].data) : nullptr;
    for (int64_t group = 0; group < groups_; ++group) {
      Range range;
      for (int64_t piece = group * pieces_; piece < (group + 1) * pieces_; ++piece) {
        range = {std::min(range.least, ranges[piece].least), std::max(range.greatest, ranges[piece].greatest)};
      }
      RETURN_IF_ERROR(
          SetParameters(range, x + group * size_, &scales[group], offsets == nullptr ? nullptr : &offsets[group]));
    }
    ForPieces(*context.parallel, [&](int64_t piece, int64_t begin, int64_t end) {
      const int64_t group = piece / pieces_;
      Params params;
      params.pixels = end - begin;
      params.scale = scales[group];
      if (asymmetric_) {
        params.zero_point = offsets[group];
      } else {  // Codes in [-127, 127], in the unsigned form.
        params.flip = 0x80;
        params.zero_point = 128;
        params.lo = 1;
      }
      quantize_(params, x + begin, static_cast<uint8_t*>(outputs[0].data) + begin, 0, end - begin);
    });
    return absl::OkStatus();
  }

  // Calls f(piece, begin, end) for the elements of each piece that has some.
  template <typename F>
  void ForPieces(kernels::Parallel& parallel, F f) const {
    const int64_t grain = pieces_ > 1 ? 1 : std::max<int64_t>(1, kGrain / std::max<int64_t>(1, size_));
    kernels::ForRanges(parallel, groups_ * pieces_, grain, [&](int64_t first, int64_t last) {
      for (int64_t piece = first; piece < last; ++piece) {
        const int64_t group = piece / pieces_, part = piece % pieces_;
        const int64_t begin = size_ * part / pieces_, end = size_ * (part + 1) / pieces_;
        f(piece, group * size_ + begin, group * size_ + end);
      }
    });
  }

  absl::Status SetParameters(const Range& range, const float* x, float* scale, uint8_t* offset) const {
    const float least = ToFloat(range.least), greatest = ToFloat(range.greatest);
    if (!std::isfinite(least) || !std::isfinite(greatest)) {
      const float* found = std::find_if(x, x + size_, [](float v) { return !std::isfinite(v); });
      return absl::InvalidArgumentError(absl::StrCat("input holds ", ShortestText(*found)));
    }
    *scale = asymmetric_ ? (greatest - least) / 255.0f : std::max(-least, greatest) / 127.0f;
    if (*scale < std::numeric_limits<float>::min()) *scale = 1;
    if (!std::isfinite(*scale)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the input's range [", ShortestText(least), ", ", ShortestText(greatest), "] overflows f32"));
    }
    if (offset != nullptr)
      *offset = static_cast<uint8_t>(std::clamp(std::nearbyint(0.0f - least / *scale), 0.0f, 255.0f));
    return absl::OkStatus();
  }

  const bool asymmetric_;
  const int64_t groups_, size_;  // Elements of a group.
  const int64_t pieces_;         // How many pieces a group is cut into.
  Function* const find_range_;
  int8::quantize::Function* const quantize_;
};

// Do the values of each group follow each other? The groups' axes come first then, but for axes of one element.
bool IsContiguous(const TensorType& x, const TensorType& scale) {
  if (scale.rank() == 0) return true;
  bool inside = false;
  for (int i = 0; i < x.rank(); ++i) {
    const int axis = x.rank() == 4 && x.layout == Layout::kNhwc ? (i == 0 ? 0 : i == 3 ? 1 : i + 1) : i;
    if (x.shape[axis] == 1) continue;
    const bool reduced = scale.shape[axis] == 1;
    if (inside && !reduced) return false;
    inside = inside || reduced;
  }
  return true;
}

}  // namespace

absl::Span<const Variant> Variants() { return kVariants; }

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const KernelDesc& desc) {
  if (!desc.has_input(0) || desc.outputs.size() < 2) {
    return absl::InvalidArgumentError(absl::StrCat(desc.op, ": wanted an operand, codes and a scale"));
  }
  if (desc.input(0).dtype != DType::kF32) {
    return absl::UnimplementedError(absl::StrCat(desc.op, ": input is ", ToString(desc.input(0)), ", wanted f32"));
  }
  if (!IsContiguous(desc.input(0), desc.outputs[1])) {
    return absl::UnimplementedError(absl::StrCat(desc.op, ": scales ", ToString(desc.outputs[1]), " of ",
                                                 ToString(desc.input(0)), ", whose values do not follow each other"));
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
