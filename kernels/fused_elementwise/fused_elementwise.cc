#include "kernels/fused_elementwise/fused_elementwise.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ir/base/elementwise.h"
#include "kernels/core/broadcast.h"
#include "kernels/core/requantize.h"
#include "kernels/fused_elementwise/block.h"

namespace fuselage::fused_elementwise {
namespace {

using kernels::Isa;
using kernels::KernelDesc;

constexpr Variant kVariants[] = {
    {"scalar", Isa::kScalar, nullptr, scalar::Run},
    {"avx2", Isa::kAvx2, nullptr, avx2::Run},
    {"avx512_vnni", Isa::kAvx512Vnni, nullptr, avx512_vnni::Run},
};

constexpr int64_t kTask = 16 * kBlock;  // Elements that are worth a thread's while.

Encoding EncodingOf(const TensorType& type) {
  if (!type.quant) return {};
  const kernels::UnsignedForm form = kernels::UnsignedFormOf(type);
  return {true, form.flip, form.zero_point, type.quant->scale()};
}

class FusedElementwise : public kernels::Kernel {
 public:
  FusedElementwise(const KernelDesc& desc, std::vector<ElementwiseInstruction> steps)
      : Kernel(desc), steps_(std::move(steps)), elements_(desc.output().num_elements()) {
    for (const auto& input : desc.inputs) {
      encodings_.push_back(EncodingOf(*input));
      broadcasts_.push_back(
          input->shape == desc.output().shape ? nullptr : std::make_unique<kernels::Broadcast>(*input, desc.output()));
    }
    params_ = {encodings_.data(), static_cast<int32_t>(encodings_.size()), steps_.data(),
               static_cast<int32_t>(steps_.size()), EncodingOf(desc.output())};
    const Variant& variant = kernels::BestVariant(Variants(), desc.isa, params_);
    run_ = variant.run;
    set_variant(variant.name);
    // A block of each value, and one for each operand that is gathered.
    thread_floats_ = kBlock * static_cast<int64_t>(2 * encodings_.size() + steps_.size());
    set_scratch_bytes(std::max(desc.threads, 1) * thread_floats_ * static_cast<int64_t>(sizeof(float)));
  }

 private:
  void Compute(absl::Span<const kernels::ConstBuffer> inputs, absl::Span<const kernels::Buffer> outputs,
               const kernels::RunContext& context) const override {
    const int tasks = static_cast<int>((elements_ + kTask - 1) / kTask);
    context.parallel->For(tasks, [&](int task, int thread) {
      float* scratch = static_cast<float*>(context.scratch.data) + thread * thread_floats_;
      const int64_t end = std::min<int64_t>(elements_, (task + int64_t{1}) * kTask);
      for (int64_t begin = task * kTask; begin < end; begin += kBlock) {
        RunBlock(inputs, outputs[0].data, scratch, begin, std::min(kBlock, end - begin));
      }
    });
  }

  void RunBlock(absl::Span<const kernels::ConstBuffer> inputs, void* y, float* scratch, int64_t begin,
                int64_t n) const {
    const void* operands[kMostValues];
    for (size_t i = 0; i < inputs.size(); ++i) {
      const int64_t size = encodings_[i].is_codes ? 1 : sizeof(float);
      operands[i] = static_cast<const uint8_t*>(inputs[i].data) + begin * size;
      if (broadcasts_[i] == nullptr) continue;
      operands[i] = scratch;
      if (encodings_[i].is_codes) {
        broadcasts_[i]->Gather(static_cast<const uint8_t*>(inputs[i].data), begin, n,
                               reinterpret_cast<uint8_t*>(scratch));
      } else {
        broadcasts_[i]->Gather(static_cast<const float*>(inputs[i].data), begin, n, scratch);
      }
      scratch += kBlock;
    }
    run_(params_, operands, static_cast<uint8_t*>(y) + begin * (params_.output.is_codes ? 1 : sizeof(float)), scratch,
         n);
  }

  const std::vector<ElementwiseInstruction> steps_;
  const int64_t elements_;
  std::vector<Encoding> encodings_;
  std::vector<std::unique_ptr<kernels::Broadcast>> broadcasts_;  // Null: as large as the result.
  Params params_;
  Function* run_ = nullptr;
  int64_t thread_floats_ = 0;
};

// The steps of fused_elementwise, or int8.<op> as one.
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

absl::Status CheckType(const TensorType& type, bool codes, absl::string_view what) {
  if (codes) return kernels::CheckCodes(type, what);
  if (type.dtype == DType::kF32 && !type.quant) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(what, " is ", ToString(type), ", wanted f32"));
}

}  // namespace

absl::Span<const Variant> Variants() { return kVariants; }

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
                                "mul",   "sigmoid", "silu", "sub",         "tanh"};

void Register(kernels::KernelRegistry& registry) {
  using kernels::LayoutRule;
  registry.Register({"fused_elementwise", LayoutRule::kSame, Create});
  const auto add = [&](const char* op) { registry.Register({absl::StrCat("int8.", op), LayoutRule::kSame, Create}); };
  for (const char* op : kOps) add(op);
  add("fused_elementwise");
}

void scalar::Run(const Params& params, const void* const* inputs, void* y, float* scratch, int64_t n) {
  RunBlock(params, inputs, y, scratch, n);
}

}  // namespace fuselage::fused_elementwise
