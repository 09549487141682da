#include "kernels/int8/add/add.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "ir/base/activation.h"
#include "kernels/core/broadcast.h"
#include "kernels/core/requantize.h"

namespace fuselage::int8::add {
namespace {

using kernels::Isa;
using kernels::KernelDesc;

constexpr Variant kVariants[] = {
    {"scalar", Isa::kScalar, nullptr, scalar::Run},
    {"avx2", Isa::kAvx2, nullptr, avx2::Run},
    {"avx512_vnni", Isa::kAvx512Vnni, nullptr, avx512_vnni::Run},
};

constexpr int64_t kGrain = 1 << 14;
constexpr int64_t kBlock = 1 << 10;  // Elements that are gathered at once.

// What is between an operand that is gathered, a block at a time, and the sums.
class Gathered {
 public:
  explicit Gathered(const kernels::Broadcast& broadcast) : broadcast_(broadcast), repetition_(broadcast.repetition()) {}

  // The n elements from `begin` on: what the block before has, where they are the same.
  const uint8_t* Load(const void* operand, int64_t begin, int64_t n) {
    const int64_t span = begin / repetition_.span, phase = begin % repetition_.run;
    const bool in_span = begin % repetition_.span + n <= repetition_.span;
    if (!in_span || span != span_ || phase != phase_ || n > n_) {
      broadcast_.Gather(static_cast<const uint8_t*>(operand), begin, n, elements_);
      span_ = in_span ? span : -1;
      phase_ = phase;
      n_ = n;
    }
    return elements_;
  }

 private:
  const kernels::Broadcast& broadcast_;
  const kernels::Broadcast::Repetition repetition_;
  int64_t span_ = -1, phase_ = 0, n_ = 0;
  uint8_t elements_[kBlock];
};

// Whether the operand's elements in their order, over and over, are what the result's meet: it has only 1s in front of
// the result's last dimensions, and in NHWC all but the batch.
bool Repeats(const TensorType& operand, const TensorType& result) {
  if (operand.layout != result.layout || operand.rank() > result.rank()) return false;
  const int lead = result.rank() - operand.rank();
  int axis = 0;
  while (axis < operand.rank() && operand.shape[axis] == 1 && result.shape[lead + axis] != 1) ++axis;
  if (result.layout != Layout::kRowMajor && axis > 1) return false;
  return std::equal(operand.shape.begin() + axis, operand.shape.end(), result.shape.begin() + lead + axis);
}

class Add : public kernels::BinaryKernel {
 public:
  Add(const KernelDesc& desc, const Params& params, const Variant& variant)
      : BinaryKernel(desc),
        params_(params),
        run_(variant.run),
        elements_(desc.output().num_elements()),
        block_(elements_),
        period_a_(desc.input(0).num_elements()),
        period_b_(desc.input(1).num_elements()) {
    set_variant(variant.name);
    if (elements_ == 0) return;
    for (int i = 0; i < 2; ++i) {
      if (Repeats(desc.input(i), desc.output())) continue;
      broadcasts_[i] = std::make_unique<kernels::Broadcast>(desc.input(i), desc.output());
      const int64_t run = broadcasts_[i]->repetition().run;
      block_ = std::min(block_, run <= kBlock ? kBlock / run * run : kBlock);
    }
  }

 private:
  void ComputeBinary(const void* a, const void* b, void* y, const kernels::RunContext& context) const override {
    uint8_t* const codes = static_cast<uint8_t*>(y);
    kernels::ForRanges(*context.parallel, elements_, kGrain, [&](int64_t begin, int64_t end) {
      std::optional<Gathered> gathered[2];
      for (int i = 0; i < 2; ++i) {
        if (broadcasts_[i] != nullptr) gathered[i].emplace(*broadcasts_[i]);
      }
      for (int64_t n; begin < end; begin += n) {
        n = std::min(end - begin, block_);
        if (!gathered[0]) n = std::min(n, period_a_ - begin % period_a_);
        if (!gathered[1]) n = std::min(n, period_b_ - begin % period_b_);
        const uint8_t* from_a =
            gathered[0] ? gathered[0]->Load(a, begin, n) : static_cast<const uint8_t*>(a) + begin % period_a_;
        const uint8_t* from_b =
            gathered[1] ? gathered[1]->Load(b, begin, n) : static_cast<const uint8_t*>(b) + begin % period_b_;
        run_(params_, from_a, from_b, codes + begin, n);
      }
    });
  }

  Params params_;
  Function* run_;
  int64_t elements_, block_, period_a_, period_b_;
  std::unique_ptr<kernels::Broadcast> broadcasts_[2];  // Null: it repeats whole.
};

absl::Status CheckMultiplier(float multiplier, absl::string_view what) {
  if (std::isnormal(multiplier)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(what, " scale / output scale is ", ShortestText(multiplier), ", wanted a normal float"));
}

}  // namespace

absl::Span<const Variant> Variants() { return kVariants; }

absl::StatusOr<Params> MakeParams(const KernelDesc& desc) {
  if (!desc.has_input(0) || !desc.has_input(1)) return absl::InvalidArgumentError("add: wanted two operands");
  const TensorType &a = desc.input(0), &b = desc.input(1), &y = desc.output();
  RETURN_IF_ERROR(kernels::CheckCodes(a, "input"));
  RETURN_IF_ERROR(kernels::CheckCodes(b, "other"));
  RETURN_IF_ERROR(kernels::CheckCodes(y, "output"));
  for (const TensorType* operand : {&a, &b}) {
    const bool same_layout = operand->layout == y.layout || operand->num_elements() == 1;
    if (operand->rank() < y.rank() || (operand->rank() == y.rank() && same_layout)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("add: ", ToString(*operand), " to ", ToString(y), ", wanted one layout, and no more axes"));
  }
  if (y.rank() > kernels::kMostBroadcastAxes) return absl::UnimplementedError(absl::StrCat("add: rank ", y.rank()));
  if (desc.GetFloat("alpha") != 1.0) {
    return absl::UnimplementedError(absl::StrCat("add: alpha ", ShortestText(desc.GetFloat("alpha")), ", wanted 1"));
  }
  ASSIGN_OR_RETURN(const Activation activation, ParseActivation(desc.GetString("activation")));
  if (!activation.is_clamp()) return absl::UnimplementedError(absl::StrCat("add: ", ToString(activation)));
  const kernels::UnsignedForm form_a = kernels::UnsignedFormOf(a), form_b = kernels::UnsignedFormOf(b),
                              form_y = kernels::UnsignedFormOf(y);
  const kernels::CodeRange range = kernels::CodeRangeOf(DType::kU8, form_y.zero_point, y.quant->scale(), activation);
  Params params;
  params.flip_a = form_a.flip;
  params.flip_b = form_b.flip;
  params.flip_y = form_y.flip;
  params.zero_point_a = form_a.zero_point;
  params.zero_point_b = form_b.zero_point;
  params.zero_point_y = form_y.zero_point;
  params.multiplier_a = a.quant->scale() / y.quant->scale();
  params.multiplier_b = b.quant->scale() / y.quant->scale();
  params.lo = range.lo;
  params.hi = range.hi;
  RETURN_IF_ERROR(CheckMultiplier(params.multiplier_a, "add: input"));
  RETURN_IF_ERROR(CheckMultiplier(params.multiplier_b, "add: other"));
  return params;
}

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const KernelDesc& desc) {
  ASSIGN_OR_RETURN(const Params params, MakeParams(desc));
  return std::make_unique<Add>(desc, params, kernels::BestVariant(Variants(), desc.isa, params));
}

void Register(kernels::KernelRegistry& registry) {
  registry.Register({"int8.add", kernels::LayoutRule::kSame, Create});
}

void scalar::Run(const Params& p, const uint8_t* a, const uint8_t* b, uint8_t* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const float centered_a = static_cast<float>((a[i] ^ p.flip_a) - p.zero_point_a);
    const float centered_b = static_cast<float>((b[i] ^ p.flip_b) - p.zero_point_b);
    const float v = std::fma(centered_b, p.multiplier_b, centered_a * p.multiplier_a);
    y[i] = static_cast<uint8_t>(kernels::ToCode(v, p.zero_point_y, {p.lo, p.hi})) ^ p.flip_y;
  }
}

}  // namespace fuselage::int8::add
