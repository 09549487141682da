#include "kernels/core/requantize.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "kernels/core/kernel.h"

namespace fuselage::kernels {
namespace {

absl::Status NotProven(int64_t channel, absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat("output channel ", channel, ": ", why));
}

absl::Status CheckNormal(float value, int64_t channel, absl::string_view what) {
  if (std::isnormal(value)) return absl::OkStatus();
  return NotProven(channel, absl::StrCat(what, " is ", ShortestText(value), ", wanted a normal float"));
}

// An accumulator times such a scale, or a residual, is finite, and so is their sum.
absl::Status CheckFinite(float scale, absl::string_view what) {
  if (scale < 0x1p96f) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(what, " is ", ShortestText(scale), ", wanted less than 2^96: the activation's operand overflows"));
}

absl::Status CheckWeight(const Tensor& weight) {
  if (weight.dtype() != DType::kI8) {
    return absl::UnimplementedError(absl::StrCat("weight is ", ToString(weight.type()), ", wanted i8"));
  }
  if (!weight.type().quant) return absl::InvalidArgumentError("weight has no quantization parameters");
  if (weight.rank() < 1) return absl::InvalidArgumentError("weight is a scalar, wanted [output channels, ...]");
  const QuantParams& quant = *weight.type().quant;
  RETURN_IF_ERROR(Annotate(CheckQuantParams(quant, weight.dtype(), weight.shape()), "weight"));
  if (!quant.per_tensor() && quant.axis != 0) {
    return absl::UnimplementedError(
        absl::StrCat("weight is quantized along axis ", quant.axis, ", wanted axis 0 or per tensor"));
  }
  for (const int32_t zero_point : quant.zero_points) {
    if (zero_point != 0) {
      return absl::UnimplementedError(absl::StrCat("weight has zero point ", zero_point, ", wanted 0"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckBias(const Tensor& bias, int64_t channels) {
  if (bias.dtype() != DType::kF32 && bias.dtype() != DType::kI32) {
    return absl::UnimplementedError(absl::StrCat("bias is ", ToString(bias.type()), ", wanted f32 or i32"));
  }
  if (bias.shape() != Shape{channels}) {
    return absl::InvalidArgumentError(absl::StrCat("bias is ", ToString(bias.type()), ", wanted [", channels, "]"));
  }
  if (bias.type().quant) {
    RETURN_IF_ERROR(Annotate(CheckQuantParams(*bias.type().quant, bias.dtype(), bias.shape()), "bias"));
  }
  return absl::OkStatus();
}

// The bias of channel `c` as a real number; `step` is s_x*s_w[c].
float RealBias(const Tensor* bias, int64_t c, float step) {
  if (bias == nullptr) return 0;
  if (bias->dtype() == DType::kF32) return bias->data<float>()[c];
  const int32_t code = bias->data<int32_t>()[c];
  if (!bias->type().quant) return static_cast<float>(code) * step;
  const QuantParams& quant = *bias->type().quant;
  const size_t i = quant.per_tensor() ? 0 : c;
  return static_cast<float>(int64_t{code} - quant.zero_points[i]) * quant.scales[i];
}

// The same in steps of s_x*s_w[c].
absl::StatusOr<int64_t> BiasSteps(const Tensor* bias, int64_t c, float step) {
  if (bias == nullptr) return 0;
  if (bias->dtype() == DType::kI32) {
    const int32_t code = bias->data<int32_t>()[c];
    if (!bias->type().quant) return code;
    const QuantParams& quant = *bias->type().quant;
    const size_t i = quant.per_tensor() ? 0 : c;
    if (quant.scales[i] == step) return int64_t{code} - quant.zero_points[i];
  }
  const float real = RealBias(bias, c, step);
  const float quotient = real / step;
  if (std::fabs(quotient) < 2147483648.0f) return static_cast<int64_t>(std::nearbyint(quotient));
  return NotProven(c, absl::StrCat("bias ", ShortestText(real), " in steps of ", ShortestText(step),
                                   ", wanted less than 2^31 of them"));
}

absl::Status CheckOperands(const EpilogueParams& params) {
  FUSELAGE_CHECK(params.input != nullptr && params.weight != nullptr && params.output != nullptr);
  RETURN_IF_ERROR(CheckCodes(*params.input, "input"));
  RETURN_IF_ERROR(CheckWeight(*params.weight));
  if (params.bias != nullptr) RETURN_IF_ERROR(CheckBias(*params.bias, params.weight->dim(0)));
  const bool float_output = params.output->dtype == DType::kF32;
  if (!float_output) RETURN_IF_ERROR(CheckCodes(*params.output, "output"));
  if (float_output && !params.activation.bounds().is_none() && !params.activation.is_relu()) {
    return absl::UnimplementedError("an activation with a clamp other than relu, of a float result");
  }
  if (params.residual == nullptr) return absl::OkStatus();
  if (float_output) return absl::UnimplementedError("a residual needs quantized output, found f32");
  return CheckCodes(*params.residual, "residual");
}

std::shared_ptr<const Tensor> KeptSums(const EpilogueParams& params) {
  const Tensor& weight = *params.weight;
  if (params.desc == nullptr) return std::make_shared<const Tensor>(WeightSums(weight));
  return params.desc->Packed("weight", absl::StrCat("sums ", ToString(WeightSumsType(weight))),
                             [&] { return WeightSums(weight); });
}

// Channel `c` of the weight, which has `inner` values.
absl::Status AddChannel(const EpilogueParams& params, int64_t c, int64_t inner, Epilogue* epilogue) {
  const bool float_output = params.output->dtype == DType::kF32;
  const int64_t largest_input = params.input->dtype == DType::kU8 ? 255 : 128;
  const QuantParams& weight_quant = *params.weight->type().quant;
  const auto [sum, magnitude, largest] = SumsOf(*epilogue->weight_sums, c);
  if (largest < 0 || largest > 128 || magnitude < largest || magnitude > largest * inner || sum < -magnitude ||
      sum > magnitude) {
    return absl::InvalidArgumentError(absl::StrCat("output channel ", c, ": found weights of sum ", sum, ", magnitude ",
                                                   magnitude, " and at most ", largest, ", which ", inner,
                                                   " cannot have"));
  }
  epilogue->largest_weight = std::max(epilogue->largest_weight, largest);
  epilogue->mean_weight += static_cast<double>(magnitude) / static_cast<double>(params.weight->num_elements());
  const float step = params.input->quant->scale() * weight_quant.scales[weight_quant.per_tensor() ? 0 : c];
  RETURN_IF_ERROR(CheckNormal(step, c, "input scale times weight scale"));
  if (epilogue->function) RETURN_IF_ERROR(CheckFinite(step, "input scale times weight scale"));
  int64_t addend = -int64_t{params.input->quant->zero_point()} * sum;
  if (!float_output) {  // A float output adds its bias after the conversion.
    ASSIGN_OR_RETURN(const int64_t steps, BiasSteps(params.bias, c, step));
    addend += steps;
  }
  if (largest_input * magnitude + std::abs(addend) >= (int64_t{1} << 31)) {
    return NotProven(c, absl::StrCat("the accumulator may overflow 32 bits: ", largest_input, " * sum|w| ", magnitude,
                                     " + |b| ", std::abs(addend), ", wanted less than 2^31"));
  }
  if (float_output) {
    const float bias = RealBias(params.bias, c, step);
    if (!std::isfinite(bias)) return NotProven(c, absl::StrCat("bias is ", ShortestText(bias)));
    epilogue->offset.push_back(static_cast<int32_t>(addend));
    epilogue->float_scale.push_back(step);
    epilogue->float_bias.push_back(bias);
    return absl::OkStatus();
  }
  const float multiplier = epilogue->function ? step : step / params.output->quant->scale();
  RETURN_IF_ERROR(CheckNormal(multiplier, c, "the multiplier"));
  epilogue->bias.push_back(static_cast<int32_t>(addend));
  epilogue->multiplier.push_back(multiplier);
  return absl::OkStatus();
}

// What stands behind the function, in steps of `output_scale`.
absl::Status AddPost(const EpilogueParams& params, float output_scale, Epilogue* epilogue) {
  const Shape wanted = {params.weight->dim(0)};
  const auto fits = [&](const Tensor* operand) {
    return operand != nullptr && operand->dtype() == DType::kF32 && operand->shape() == wanted;
  };
  if (!params.activation.is_function() || !fits(params.post_scale) || !fits(params.post_shift)) {
    return absl::InvalidArgumentError(absl::StrCat("post_scale and post_shift: both of f32 ", ToString(wanted),
                                                   " behind an activation without a clamp wanted"));
  }
  epilogue->post = std::vector<Epilogue::Post>(wanted[0]);
  for (int64_t c = 0; c < wanted[0]; ++c) {
    Epilogue::Post& post = epilogue->post[c];
    post = {params.post_scale->data<float>()[c] / output_scale, params.post_shift->data<float>()[c] / output_scale};
    for (const float value : {post.multiplier, post.offset}) {
      // A subnormal one would be 0 to some machines.
      if (value == 0 || (std::isnormal(value) && std::fabs(value) < 0x1p96f)) continue;
      return NotProven(c, absl::StrCat("post_scale or post_shift over the output's scale is ", ShortestText(value),
                                       ", wanted 0 or a normal float below 2^96"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

// Here once, not wherever one is made.
Epilogue::Epilogue() = default;
Epilogue::Epilogue(const Epilogue&) = default;
Epilogue::Epilogue(Epilogue&&) noexcept = default;
Epilogue& Epilogue::operator=(const Epilogue&) = default;
Epilogue& Epilogue::operator=(Epilogue&&) noexcept = default;
Epilogue::~Epilogue() = default;

CodeRange CodeRangeOf(DType dtype, int32_t zero_point, float scale, const Activation& activation) {
  const IntegerRange range = RangeOf(dtype);
  const CodeRange all{static_cast<int32_t>(range.min), static_cast<int32_t>(range.max)};
  return {QuantizeValue(activation.min, scale, zero_point, all), QuantizeValue(activation.max, scale, zero_point, all)};
}

UnsignedForm UnsignedFormOf(const TensorType& codes) {
  const int32_t zero_point = codes.quant->zero_point();
  return codes.dtype == DType::kI8 ? UnsignedForm{0x80, zero_point + 128} : UnsignedForm{0, zero_point};
}

absl::StatusOr<Epilogue> MakeEpilogue(const EpilogueParams& params) {
  RETURN_IF_ERROR(CheckOperands(params));
  const int64_t channels = params.weight->dim(0);
  const int64_t inner = channels == 0 ? 0 : params.weight->num_elements() / channels;
  Epilogue epilogue;
  epilogue.weight_sums = KeptSums(params);
  epilogue.function = params.activation.function;
  for (int64_t c = 0; c < channels; ++c) RETURN_IF_ERROR(AddChannel(params, c, inner, &epilogue));
  const bool float_output = params.output->dtype == DType::kF32;
  if (params.post_scale != nullptr || params.post_shift != nullptr) {
    RETURN_IF_ERROR(AddPost(params, float_output ? 1.0f : params.output->quant->scale(), &epilogue));
  }
  if (float_output) return epilogue;
  const float output_scale = params.output->quant->scale();
  epilogue.zero_point = params.output->quant->zero_point();
  epilogue.range = CodeRangeOf(params.output->dtype, epilogue.zero_point, output_scale, params.activation);
  if (epilogue.function) {
    epilogue.function = elementwise::ForCodes(*epilogue.function);
    epilogue.function_multiplier = 1 / output_scale;
    if (!std::isnormal(epilogue.function_multiplier)) {
      return absl::FailedPreconditionError(absl::StrCat(
          "one over the output's scale is ", ShortestText(epilogue.function_multiplier), ", wanted a normal float"));
    }
  }
  if (params.residual != nullptr) {
    const float residual_scale = params.residual->quant->scale();
    if (epilogue.function) RETURN_IF_ERROR(CheckFinite(residual_scale, "the residual's scale"));
    epilogue.residual_multiplier = epilogue.function ? residual_scale : residual_scale / output_scale;
    epilogue.residual_zero_point = params.residual->quant->zero_point();
    if (!std::isnormal(epilogue.residual_multiplier)) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the residual's multiplier is ", ShortestText(epilogue.residual_multiplier), ", wanted a normal float"));
    }
  }
  return epilogue;
}

}  // namespace fuselage::kernels
