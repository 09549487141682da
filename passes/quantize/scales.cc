#include "passes/quantize/scales.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace fuselage::quantize {
namespace {

constexpr double kSmallestScale = std::numeric_limits<float>::min();  // Normal.
constexpr double kLargestBias = 0x1p30;                               // In steps; the accumulator needs the rest.
// A channel this much below the largest is lost in the output's rounding; its scale need not underflow.
constexpr double kSmallestRelativeScale = 0x1p-40;

int32_t ZeroPoint(double steps, IntegerRange range) {
  return static_cast<int32_t>(
      std::clamp(std::nearbyint(steps), static_cast<double>(range.min), static_cast<double>(range.max)));
}

}  // namespace

double Spelled(float scale) {
  const double decimal = std::strtod(ShortestText(scale).c_str(), nullptr);
  return static_cast<float>(decimal) == scale ? decimal : scale;
}

Range Union(Range a, Range b) { return {std::min(a.min, b.min), std::max(a.max, b.max)}; }

Codes ActivationCodes(Range range, QuantizeOptions::Activations activations) {
  const double min = std::min(range.min, 0.0), max = std::max(range.max, 0.0);
  Codes codes;
  codes.dtype = activations == QuantizeOptions::U8_AFFINE ? DType::kU8 : DType::kI8;
  const bool symmetric = activations == QuantizeOptions::I8_SYMMETRIC;
  codes.scale = static_cast<float>(symmetric ? std::max(-min, max) / 127 : (max - min) / 255);
  if (!std::isnormal(codes.scale)) codes.scale = 1;
  if (symmetric) return codes;
  const IntegerRange limits = RangeOf(codes.dtype);
  codes.zero_point = ZeroPoint(static_cast<double>(limits.min) - min / codes.scale, limits);
  return codes;
}

int LargestCode(QuantizeOptions::Weights mode) {
  switch (mode) {
    case QuantizeOptions::PER_CHANNEL_7_BITS: return 63;
    case QuantizeOptions::INT4: return 7;
    default: return 127;
  }
}

std::vector<float> WeightScales(const WeightRequest& request) {
  const Tensor& weight = *request.weight;
  const int64_t channels = weight.dim(0);
  const int64_t inner = channels == 0 ? 0 : weight.num_elements() / channels;
  const float* values = weight.data<float>();
  std::vector<double> scales(channels, 0), from_bias(channels, 0);
  double largest = 0;
  for (int64_t c = 0; c < channels; ++c) {
    float magnitude = 0;
    for (int64_t i = c * inner; i < (c + 1) * inner; ++i) magnitude = std::max(magnitude, std::fabs(values[i]));
    scales[c] = double{magnitude} / LargestCode(request.mode);
    largest = std::max(largest, scales[c]);
    if (request.bias != nullptr && request.input_scale > 0) {
      from_bias[c] = std::fabs(request.bias->At(c)) / (request.input_scale * kLargestBias);
    }
  }
  if (request.mode == QuantizeOptions::PER_TENSOR) {
    scales = {largest};
    from_bias = {channels == 0 ? 0.0 : *std::max_element(from_bias.begin(), from_bias.end())};
  }
  std::vector<float> result;
  for (size_t c = 0; c < scales.size(); ++c) {
    double scale = scales[c] > 0 ? scales[c] : largest > 0 ? largest : 1;
    scale = std::max({scale, from_bias[c], largest * kSmallestRelativeScale, kSmallestScale});
    result.push_back(static_cast<float>(std::min<double>(scale, std::numeric_limits<float>::max())));
  }
  return result;
}

Tensor QuantizeWeight(const Tensor& weight, const std::vector<float>& scales, QuantizeOptions::Weights mode) {
  TensorType type{DType::kI8, weight.shape(), std::nullopt, Layout::kRowMajor};
  const bool per_channel = mode != QuantizeOptions::PER_TENSOR;
  type.quant = per_channel ? PerAxis(0, scales) : PerTensor(scales[0]);
  Tensor codes(std::move(type));
  const int64_t channels = weight.dim(0);
  const int64_t inner = channels == 0 ? 0 : weight.num_elements() / channels;
  const float largest = static_cast<float>(LargestCode(mode));
  const float* from = weight.data<float>();
  int8_t* to = codes.data<int8_t>();
  for (int64_t c = 0; c < channels; ++c) {
    const float scale = scales[per_channel ? c : 0];
    for (int64_t i = c * inner; i < (c + 1) * inner; ++i) {
      to[i] = static_cast<int8_t>(std::clamp(std::nearbyint(from[i] / scale), -largest, largest));
    }
  }
  return codes;
}

}  // namespace fuselage::quantize
