#include "kernels/fused_elementwise/fused_elementwise.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ir/base/elementwise.h"
#include "kernels/core/broadcast.h"
#include "kernels/core/requantize.h"
#include "kernels/fused_elementwise/block.h"
#include "kernels/int8/dequantize/dequantize.h"
#include "kernels/int8/quantize/quantize.h"

namespace fuselage::fused_elementwise {
namespace {

using kernels::Isa;
using kernels::KernelDesc;

constexpr Variant kVariants[] = {
    {"scalar", Isa::kScalar, nullptr, scalar::Run},
    {"avx2", Isa::kAvx2, nullptr, avx2::Run},
    {"avx512_vnni", Isa::kAvx512Vnni, nullptr, avx512_vnni::Run},
};

constexpr ScaleVariant kScaleVariants[] = {
    {"avx2 scale", Isa::kAvx2, nullptr, avx2::Scale},
    {"avx512_vnni scale", Isa::kAvx512Vnni, nullptr, avx512_vnni::Scale},
};

constexpr int64_t kVectorCodes = 64;
constexpr int64_t kTaskBlocks = 16;  // That are worth a thread's while.

// What a block of codes is converted with: one image of one channel.
template <typename ConversionParams>
ConversionParams ConversionOf(const TensorType& type) {
  const kernels::UnsignedForm form = kernels::UnsignedFormOf(type);
  ConversionParams params;
  params.pixels = kBlock;
  params.scale = type.quant->scale();
  params.flip = form.flip;
  params.zero_point = form.zero_point;
  return params;
}

class FusedElementwise : public kernels::Kernel {
 public:
  FusedElementwise(const KernelDesc& desc, std::vector<ElementwiseInstruction> steps)
      : Kernel(desc),
        steps_(std::move(steps)),
        elements_(desc.output().num_elements()),
        is_codes_(desc.output().quant.has_value()),
        element_bytes_(is_codes_ ? 1 : sizeof(float)),
        dequantize_(kernels::BestVariant(int8::dequantize::Variants(), desc.isa).run),
        quantize_(kernels::BestVariant(int8::quantize::Variants(), desc.isa).run) {
    for (const auto& input : desc.inputs) {
      operands_.push_back({});
      if (is_codes_) operands_.back().encoding = ConversionOf<int8::dequantize::Params>(*input);
      if (input->shape == desc.output().shape) continue;
      operands_.back().broadcast = std::make_unique<kernels::Broadcast>(*input, desc.output());
    }
    ChooseBlock();
    if (is_codes_) output_ = ConversionOf<int8::quantize::Params>(desc.output());
    params_ = {static_cast<int32_t>(operands_.size()), steps_.data(), static_cast<int32_t>(steps_.size())};
    const Variant& variant = kernels::BestVariant(Variants(), desc.isa);
    run_ = variant.run;
    set_variant(variant.name);
    ChooseScale(desc.isa);
    // A block of each value, and one for each operand that is gathered.
    thread_floats_ = kBlock * static_cast<int64_t>(2 * operands_.size() + steps_.size());
    set_scratch_bytes(std::max(desc.threads, 1) * thread_floats_ * static_cast<int64_t>(sizeof(float)));
  }

 private:
  struct Operand {
    int8::dequantize::Params encoding;              // Of codes.
    std::unique_ptr<kernels::Broadcast> broadcast;  // Null: as large as the result.
    bool repeats = false;                           // All blocks of a span begin with the same elements.
  };

  // The longest run that repeats decides, and what repeats within it does as well.
  void ChooseBlock() {
    span_ = std::max<int64_t>(elements_, 1);
    if (elements_ == 0) return;
    int64_t longest = 0;
    for (const Operand& operand : operands_) {
      if (operand.broadcast == nullptr) continue;
      const kernels::Broadcast::Repetition repetition = operand.broadcast->repetition();
      if (repetition.span < 2 * repetition.run || repetition.run > kBlock || repetition.run <= longest) continue;
      if (repetition.span < kBlock) continue;  // No block would be whole.
      longest = repetition.run;
      span_ = repetition.span;
    }
    if (longest == 0) return;
    // Whole vectors of codes, where that many fit.
    const int64_t step = std::lcm(longest, kVectorCodes);
    block_ = step <= kBlock ? kBlock / step * step : kBlock / longest * longest;
    for (Operand& operand : operands_) {
      if (operand.broadcast == nullptr) continue;
      const kernels::Broadcast::Repetition repetition = operand.broadcast->repetition();
      operand.repeats = longest % repetition.run == 0 && repetition.span % span_ == 0;
    }
  }

  // A product of codes by others, of all or of those below 0. No product of these scales is NaN.
  void ChooseScale(Isa isa) {
    if (!is_codes_ || steps_.size() != 1 || operands_.size() != 2) return;
    const bool is_prelu = steps_[0].op == ElementwiseOp::kPrelu;
    if (steps_[0].op != ElementwiseOp::kMul && !is_prelu) return;
    factors_ = operands_[0].broadcast != nullptr && !is_prelu ? 0 : 1;
    const Operand &factors = operands_[factors_], &codes = operands_[1 - factors_];
    const auto is_finite = [](const Operand& operand) { return std::isfinite(256 * operand.encoding.scale); };
    if (codes.broadcast != nullptr || !is_finite(factors) || !is_finite(codes)) return;
    const ScaleVariant* variant =
        kernels::LastVariantOrNull(ScaleVariants(), isa, [](const ScaleVariant&) { return true; });
    if (variant == nullptr) return;
    set_variant(variant->name);
    scale_ = variant->run;
    scale_params_ = {codes.encoding, output_, 256 * factors.encoding.scale, is_prelu};
  }

  void Compute(absl::Span<const kernels::ConstBuffer> inputs, absl::Span<const kernels::Buffer> outputs,
               const kernels::RunContext& context) const override {
    const int64_t task_elements = kTaskBlocks * block_;
    const int tasks = static_cast<int>((elements_ + task_elements - 1) / task_elements);
    context.parallel->For(tasks, [&](int task, int thread) {
      float* scratch = static_cast<float*>(context.scratch.data) + thread * thread_floats_;
      int64_t begin = task * task_elements;
      const int64_t end = std::min(elements_, begin + task_elements);
      for (int64_t loaded = -1, n; begin < end; begin += n) {
        const int64_t span = begin / span_;
        n = std::min({block_, end - begin, (span + 1) * span_ - begin});
        RunBlock(inputs, outputs[0].data, scratch, begin, n, loaded == span);
        loaded = span;
      }
    });
  }

  // `loaded`: what repeats is in the scratch memory.
  void RunBlock(absl::Span<const kernels::ConstBuffer> inputs, void* y, float* scratch, int64_t begin, int64_t n,
                bool loaded) const {
    uint8_t* result = static_cast<uint8_t*>(y) + begin * element_bytes_;
    if (scale_ != nullptr) {
      const float* factors = Load(operands_[factors_], inputs[factors_].data, begin, n, loaded, &scratch);
      return scale_(scale_params_, static_cast<const uint8_t*>(inputs[1 - factors_].data) + begin, factors, result, n);
    }
    const float* values[kMostValues];
    for (size_t i = 0; i < inputs.size(); ++i) {
      values[i] = Load(operands_[i], inputs[i].data, begin, n, loaded, &scratch);
    }
    if (!is_codes_) return run_(params_, values, reinterpret_cast<float*>(result), scratch, n);
    run_(params_, values, scratch, scratch + kBlock, n);
    quantize_(output_, scratch, result, 0, n);
  }

  // The floats of elements [begin, begin + n), from the operand or from *scratch, which moves behind them.
  const float* Load(const Operand& operand, const void* data, int64_t begin, int64_t n, bool loaded,
                    float** scratch) const {
    const bool gathered = operand.broadcast != nullptr;
    float *const area = *scratch, *const values = gathered && is_codes_ ? area + kBlock : area;
    *scratch += kBlock * (gathered + is_codes_);
    if (operand.repeats) {
      if (loaded) return values;
      begin -= begin % span_;
      n = std::min(block_, span_);
    }
    const void* block = static_cast<const uint8_t*>(data) + begin * element_bytes_;
    if (gathered) {
      block = area;
      if (is_codes_) {
        operand.broadcast->Gather(static_cast<const uint8_t*>(data), begin, n, reinterpret_cast<uint8_t*>(area));
      } else {
        operand.broadcast->Gather(static_cast<const float*>(data), begin, n, area);
      }
    }
    if (!is_codes_) return static_cast<const float*>(block);
    dequantize_(operand.encoding, static_cast<const uint8_t*>(block), values, 0, n);
    return values;
  }

  const std::vector<ElementwiseInstruction> steps_;
  const int64_t elements_;
  int64_t span_ = 0, block_ = kBlock;  // Elements after which operands no longer repeat; of a block.
  const bool is_codes_;                // All operands and the result; otherwise all are floats.
  const int64_t element_bytes_;
  int8::dequantize::Function* const dequantize_;
  int8::quantize::Function* const quantize_;
  std::vector<Operand> operands_;
  int8::quantize::Params output_;
  Params params_;
  Function* run_ = nullptr;
  // Where codes are scaled in registers; null: they are not.
  ScaleFunction* scale_ = nullptr;
  ScaleParams scale_params_;
  size_t factors_ = 0;  // The operand.
  int64_t thread_floats_ = 0;
};

absl::Status CheckType(const TensorType& type, bool codes, absl::string_view what) {
  if (codes) return kernels::CheckCodes(type, what);
  if (type.dtype == DType::kF32 && !type.quant) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(what, " is ", ToString(type), ", wanted f32"));
}

}  // namespace

absl::Span<const Variant> Variants() { return kVariants; }
absl::Span<const ScaleVariant> ScaleVariants() { return kScaleVariants; }

absl::StatusOr<std::vector<ElementwiseInstruction>> StepsOf(const KernelDesc& desc) {
  const int operands = static_cast<int>(desc.inputs.size());
  if (desc.attributes.count("steps") > 0) {
    ASSIGN_OR_RETURN(const std::vector<ElementwiseStep> steps,
                     ParseElementwiseSteps(desc.attribute("steps").as_strings(), operands));
    return CompileElementwise(steps);
  }
  ElementwiseStep step{desc.op.substr(desc.op.find('.') + 1), {}, {}};
  for (int i = 0; i < operands; ++i) step.operands.push_back(i);
  for (const auto& [name, value] : desc.attributes) {
    if (!absl::StartsWith(name, "out_")) step.attributes.emplace(name, value);
  }
  return CompileElementwise({step});
}

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const KernelDesc& desc) {
  if (desc.inputs.empty()) return absl::InvalidArgumentError(absl::StrCat(desc.op, ": no operands"));
  const bool codes = desc.output().quant.has_value();
  RETURN_IF_ERROR(CheckType(desc.output(), codes, "output"));
  for (size_t i = 0; i < desc.inputs.size(); ++i) {
    if (!desc.has_input(static_cast<int>(i)))
      return absl::InvalidArgumentError(absl::StrCat("operand ", i, " is absent"));
    const TensorType& input = desc.input(static_cast<int>(i));
    RETURN_IF_ERROR(CheckType(input, codes, absl::StrCat("operand ", i)));
    if (input.rank() > desc.output().rank() ||
        (input.rank() == 4 && input.layout != desc.output().layout && input.num_elements() > 1)) {
      return absl::InvalidArgumentError(
          absl::StrCat("operand ", i, ": ", ToString(input), " with an output ", ToString(desc.output())));
    }
  }
  if (desc.output().rank() > kernels::kMostBroadcastAxes)
    return absl::UnimplementedError(absl::StrCat("rank ", desc.output().rank()));
  ASSIGN_OR_RETURN(std::vector<ElementwiseInstruction> steps, StepsOf(desc));
  if (desc.inputs.size() + steps.size() > kMostValues) {
    return absl::UnimplementedError(
        absl::StrCat(desc.inputs.size() + steps.size(), " operands and steps, at most ", kMostValues));
  }
  return std::make_unique<FusedElementwise>(desc, std::move(steps));
}

// Every operator that has no kernel of its own for codes.
constexpr const char* kOps[] = {"clamp", "div",     "gelu", "hardsigmoid", "hardswish", "leaky_relu",
                                "mul",   "prelu", "sigmoid", "silu", "sub",         "tanh"};

void Register(kernels::KernelRegistry& registry) {
  using kernels::LayoutRule;
  registry.Register({"fused_elementwise", LayoutRule::kSame, Create});
  const auto add = [&](const char* op) { registry.Register({absl::StrCat("int8.", op), LayoutRule::kSame, Create}); };
  for (const char* op : kOps) add(op);
  add("fused_elementwise");
}

void scalar::Run(const Params& params, const float* const* inputs, float* y, float* scratch, int64_t n) {
  RunBlock(params, inputs, y, scratch, n);
}

}  // namespace fuselage::fused_elementwise
