#include "ir/ops/int8/core/arithmetic.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ir/base/activation.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"

namespace fuselage::ops::int8 {
namespace {

enum Operand { kInput, kWeight, kBias };

absl::Status NotProven(int64_t channel, absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat("output channel ", channel, ": ", why));
}

// One output channel's constants.
struct Channel {
  float step = 0;    // s_x * s_w[c]
  double steps = 0;  // The bias as a whole number of steps.
  float real_bias = 0;
};

absl::Status ReadBias(const Tensor& bias, int64_t c, Channel* channel) {
  if (bias.dtype() == DType::kF32) {
    channel->real_bias = bias.data<float>()[c];
  } else {
    const std::optional<QuantParams>& quant = bias.type().quant;
    const size_t k = quant && !quant->per_tensor() ? c : 0;
    const float scale = quant ? quant->scales[k] : channel->step;
    const double code = bias.At(c) - (quant ? quant->zero_points[k] : 0);
    channel->real_bias = static_cast<float>(code) * scale;
    if (scale == channel->step) {
      channel->steps = code;
      return absl::OkStatus();
    }
  }
  channel->steps = std::nearbyint(static_cast<double>(channel->real_bias / channel->step));
  if (std::fabs(channel->steps) < 2147483648.0) return absl::OkStatus();
  return NotProven(c, absl::StrCat("bias ", ShortestText(channel->real_bias), " in steps of ",
                                   ShortestText(channel->step), ", wanted less than 2^31 of them"));
}

absl::StatusOr<Channel> ChannelOf(const ir::EvaluateCall& call, int64_t c) {
  const Tensor& weight = call.tensor(kWeight);
  const QuantParams input_quant = call.tensor(kInput).type().quant.value_or(PerTensor(1));
  const QuantParams& weight_quant = *weight.type().quant;
  const bool float_output = call.result().dtype == DType::kF32;
  Channel channel;
  channel.step = input_quant.scale() * weight_quant.scales[weight_quant.per_tensor() ? 0 : c];
  if (!std::isnormal(channel.step)) {
    return NotProven(
        c, absl::StrCat("input scale times weight scale is ", ShortestText(channel.step), ", wanted a normal float"));
  }
  if (call.has(kBias)) {
    const absl::Status status = ReadBias(call.tensor(kBias), c, &channel);
    // A float output adds its bias as it is.
    if (!float_output) RETURN_IF_ERROR(status);
    if (!std::isfinite(channel.real_bias)) return NotProven(c, "bias is not finite");
  }
  const int64_t inner = weight.num_elements() / weight.dim(0);
  int64_t sum = 0, magnitude = 0;
  for (int64_t i = 0; i < inner; ++i) {
    const int64_t w = weight.data<int8_t>()[c * inner + i];
    sum += w;
    magnitude += std::abs(w);
  }
  const int64_t largest = call.tensor(kInput).dtype() == DType::kU8 ? 255 : 128;
  const int64_t addend =
      (float_output ? 0 : static_cast<int64_t>(channel.steps)) - int64_t{input_quant.zero_point()} * sum;
  if (largest * magnitude + std::abs(addend) >= (int64_t{1} << 31)) {
    return NotProven(c, absl::StrCat("the accumulator may overflow 32 bits: ", largest, " * sum|w| ", magnitude,
                                     " + |b| ", std::abs(addend), ", wanted less than 2^31"));
  }
  return channel;
}

// The operand of this name; null where the op has none, or the call.
const Tensor* OperandOrNull(const ir::EvaluateCall& call, absl::string_view name) {
  const int i = call.schema().OperandIndex(name);
  return i >= 0 && call.has(i) ? &call.tensor(i) : nullptr;
}

// Whatever the sum, it is finite times such a scale.
absl::Status CheckFinite(float scale, absl::string_view what) {
  if (scale < 0x1p96f) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(what, " is ", ShortestText(scale), ", wanted less than 2^96"));
}

}  // namespace

std::vector<ir::AttributeSpec> OutputAttributes() {
  return {{"out_dtype", AttributeKind::kDType, DType::kU8},
          {"out_scale", AttributeKind::kFloat, 1.0},
          {"out_zero_point", AttributeKind::kInt, 0}};
}

absl::StatusOr<ir::Type> OutputType(const ir::OpCall& call, Shape shape) {
  const DType dtype = call.GetDType("out_dtype");
  if (dtype == DType::kF32 && call.schema().float_result) return ResultType(dtype, std::move(shape));
  if (dtype != DType::kU8 && dtype != DType::kI8) {
    return AttributeError(call, "out_dtype", call.schema().float_result ? "u8, i8 or f32" : "u8 or i8");
  }
  const float scale = static_cast<float>(call.GetFloat("out_scale"));
  if (!std::isnormal(scale) || scale < 0) return AttributeError(call, "out_scale", "a normal float > 0");
  const IntegerRange range = RangeOf(dtype);
  const int64_t zero_point = call.GetInt("out_zero_point");
  if (zero_point < range.min || zero_point > range.max) {
    return AttributeError(call, "out_zero_point", absl::StrCat("a value in [", range.min, ", ", range.max, "]"));
  }
  return ResultType(dtype, std::move(shape), PerTensor(scale, static_cast<int32_t>(zero_point)));
}

absl::Status CheckCodes(const ir::InferCall& call, int i) {
  const TensorType& type = call.tensor(i);
  if ((type.dtype == DType::kU8 || type.dtype == DType::kI8) && type.quant && type.quant->per_tensor()) {
    return CheckQuantParams(*type.quant, type.dtype, type.shape);
  }
  return OperandError(call, i, "wanted u8 or i8 codes with one scale");
}

absl::Status CheckWeight(const ir::InferCall& call, int i, int axis) {
  const TensorType& weight = call.tensor(i);
  if (weight.dtype != DType::kI8 || !weight.quant || (!weight.quant->per_tensor() && weight.quant->axis != axis)) {
    return OperandError(call, i, absl::StrCat("wanted i8 codes with one scale, or one for each index of axis ", axis));
  }
  RETURN_IF_ERROR(CheckQuantParams(*weight.quant, weight.dtype, weight.shape));
  for (int32_t zero_point : weight.quant->zero_points) {
    if (zero_point != 0) return OperandError(call, i, absl::StrCat("zero point ", zero_point, ", wanted 0"));
  }
  return absl::OkStatus();
}

absl::Status CheckWeightAndBias(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckWeight(call, kWeight, 0));
  if (!call.has(kBias)) return absl::OkStatus();
  const TensorType& bias = call.tensor(kBias);
  if (bias.dtype == DType::kF32) return absl::OkStatus();
  if (bias.dtype != DType::kI32) return OperandError(call, kBias, "wanted f32 or i32");
  return bias.quant ? CheckQuantParams(*bias.quant, bias.dtype, bias.shape) : absl::OkStatus();
}

int32_t Rounding::operator()(float v) const {
  v = v > -0x1p30f ? v : -0x1p30f;  // NaN too: the sum of opposite infinities.
  const int32_t q = static_cast<int32_t>(std::nearbyint(std::min(v, 0x1p30f))) + zero_point;
  return std::clamp(q, lo, hi);
}

Rounding RoundingOf(const TensorType& codes, const Activation& activation) {
  const IntegerRange range = RangeOf(codes.dtype);
  Rounding rounding{codes.quant->zero_point(), static_cast<int32_t>(range.min), static_cast<int32_t>(range.max)};
  const int32_t lo = rounding(activation.min / codes.quant->scale()),
                hi = rounding(activation.max / codes.quant->scale());
  rounding.lo = lo;
  rounding.hi = hi;
  return rounding;
}

absl::StatusOr<float> Multiplier(float numerator, float denominator, absl::string_view what) {
  const float multiplier = numerator / denominator;
  if (std::isnormal(multiplier)) return multiplier;
  return absl::FailedPreconditionError(absl::StrCat(what, " is ", ShortestText(multiplier), ", wanted a normal float"));
}

std::vector<double> Centered(const Tensor& codes) {
  std::vector<double> values = ToDoubles(codes);
  const int32_t zero_point = codes.type().quant ? codes.type().quant->zero_point() : 0;
  for (double& value : values) value -= zero_point;
  return values;
}

absl::StatusOr<Tensor> Requantized(const ir::EvaluateCall& call, const std::vector<double>& sums, int64_t channels) {
  Tensor result(call.result());
  const bool float_output = result.dtype() == DType::kF32;
  Activation activation = ParseActivation(call.GetString("activation")).value();
  if (!float_output && activation.function) activation.function = elementwise::ForCodes(*activation.function);
  const Rounding round = float_output ? Rounding{} : RoundingOf(result.type(), activation);
  const Activation function = activation.without_bounds();  // `round` bounds codes.
  // What values are in steps of before the activation: a function's are real.
  const float unit = float_output || !activation.is_clamp() ? 1 : result.type().quant->scale();
  float function_multiplier = 1;
  if (!float_output && !activation.is_clamp()) {
    ASSIGN_OR_RETURN(function_multiplier, Multiplier(1, result.type().quant->scale(), "one over the output's scale"));
  }
  std::vector<double> residual;
  float residual_multiplier = 0;
  if (const Tensor* codes = OperandOrNull(call, "residual"); codes != nullptr) {
    residual = Centered(*codes);
    const float scale = codes->type().quant->scale();
    ASSIGN_OR_RETURN(residual_multiplier, Multiplier(scale, unit, "the residual's multiplier"));
    if (!activation.is_clamp()) RETURN_IF_ERROR(CheckFinite(scale, "the residual's scale"));
  }
  const Tensor *post_scale = OperandOrNull(call, "post_scale"), *post_shift = OperandOrNull(call, "post_shift");
  const Tensor* row_scales = OperandOrNull(call, "input_scale");
  const bool channels_last = call.tensor(kWeight).rank() == 2;  // A linear layer, whatever its rank.
  const int64_t batch = !channels_last ? result.dim(0) : channels == 0 ? 0 : result.num_elements() / channels;
  const int64_t pixels = batch * channels == 0 ? 0 : result.num_elements() / (batch * channels);
  for (int64_t c = 0; c < channels; ++c) {
    ASSIGN_OR_RETURN(const Channel channel, ChannelOf(call, c));
    if (!activation.is_clamp()) RETURN_IF_ERROR(CheckFinite(channel.step, "input scale times weight scale"));
    float multiplier = 0;
    if (!float_output) {
      absl::StatusOr<float> m = Multiplier(channel.step, unit, "the multiplier");
      if (!m.ok()) return NotProven(c, m.status().message());
      multiplier = *m;
    }
    // f(v), in steps of the result's codes.
    const auto activated = [&](float v) {
      if (post_scale == nullptr) return function(v) * function_multiplier;
      const float step = float_output ? 1 : result.type().quant->scale();
      return std::fma(function(v), post_scale->data<float>()[c] / step, post_shift->data<float>()[c] / step);
    };
    for (int64_t n = 0; n < batch; ++n) {
      for (int64_t p = 0; p < pixels; ++p) {
        const int64_t i = (n * channels + c) * pixels + p;
        if (float_output) {
          const float step = row_scales == nullptr ? channel.step : channel.step * row_scales->data<float>()[n];
          const float y = std::fma(static_cast<float>(sums[i]), step, channel.real_bias);
          result.data<float>()[i] = post_scale == nullptr ? activation(y) : activated(y);
          continue;
        }
        float v = static_cast<float>(sums[i] + channel.steps) * multiplier;
        if (!residual.empty()) v = std::fma(static_cast<float>(residual[i]), residual_multiplier, v);
        result.Set(i, round(activation.is_clamp() ? v : activated(v)));
      }
    }
  }
  return result;
}

}  // namespace fuselage::ops::int8
